"""The self-test: does everything that an installation can lack work? Every step is something a user would do.

Owns the steps and their order. Changes nothing of the user's: its files are in their own folder.
"""

import io
import queue
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler
from PySide6.QtGui import QImage, QPixmap
from PySide6.QtWidgets import QApplication

from kvdesk import paths
from kvdesk.app.language import install_language
from kvdesk.app.models.servers import find as find_server
from kvdesk.attachments.reader import read_file
from kvdesk.backends.base import Backend, Emit
from kvdesk.backends.local.llama.binding import engine_version
from kvdesk.backends.local.llama.context import MAPS, Context
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.llama.self_check import checked_context
from kvdesk.backends.openai.problems import ServerError
from kvdesk.backends.process.backend import ProcessBackend
from kvdesk.cache.batch import Batch
from kvdesk.cache.compaction import Layout, permute_blob, plan_compaction
from kvdesk.chat import Conversation
from kvdesk.errors import KvdeskError
from kvdesk.headless import HeadlessChat, HeadlessEngine, running
from kvdesk.library.catalogue import facts_of, fit_of
from kvdesk.library.estimate import available_bytes
from kvdesk.library.find import find_models, known_folders
from kvdesk.library.hub import Hub, HubUnreachable
from kvdesk.message import Message, TurnStats, new_conversation_id, new_message_id
from kvdesk.protocol.cache import SpeedSample
from kvdesk.protocol.chat import LoadModel
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import ContextSettings, Sampling, ToolServer
from kvdesk.store.server_keys import ServerKeys
from kvdesk.store.store import Store
from kvdesk.tools.client import ToolClients
from kvdesk.tools.servers import ServerState, tokens_of
from kvdesk.ui.graphs.graphs_page import GraphsPage
from kvdesk.ui.markdown.formulas import FormulaDrawer, picture
from kvdesk.ui.models.page import ModelsPage
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.style.icons import application_icon, line_icon
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.values import dataclass
from kvdesk.viewmodel.graphs.measurements import Measurements
from kvdesk.viewmodel.models import Machine, row_of

PROMPT = "What is the chemical symbol for water?"
ANSWER = "The chemical symbol for water is H2"
"""The first N_TOKENS tokens that the embedded model answers greedily. The likeliest token is ahead of the next by 2.7
in the logit each time, so that no processor's rounding takes another one."""
N_TOKENS = 8
_START_S = 60.0
NOBODY = "http://127.0.0.1:9"
"""An address of this computer where no program listens."""
SMALL = ContextSettings(n_ctx=256, n_seq_max=2, n_batch=64, n_threads=1, n_threads_batch=1, exact=True)


class Failure(Exception):
    """A step did not do what it should; says what in words."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One step: what was seen, or why it failed."""

    step: str
    passed: bool
    said: str
    ms: float


def run(folder: Path) -> Iterator[Outcome]:
    """All steps in order; the first that fails is the last. `folder` takes the files that are written."""
    steps: dict[str, Callable[[], str]] = {
        "window": _window,
        "plot": _plot,
        "store": lambda: _store(folder / "selftest.sqlite3"),
        "attachments": lambda: _attachments(folder),
        "model": _model,
        "greedy text": _greedy_text,
        "safe mode": _safe_mode,
        "connecting": _connecting,
        "tools": _tools,
        "compaction": _compaction,
        "audit": _audit,
        "server": _server,
        "model hub": _model_hub,
        "found models": lambda: _found_models(folder),
        "languages": _languages,
        "formula": _formula,
        "terminal": _terminal,
    }
    for name, step in steps.items():
        start = time.perf_counter()
        passed = True
        try:
            said = step()
        except Failure as failure:
            passed, said = False, str(failure)
        except KvdeskError as error:
            passed, said = False, f"{error} {error.detail}".strip()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with this installation is the step's answer
            passed, said = False, f"{type(error).__name__}: {error}"
        yield Outcome(name, passed, said, round(1000 * (time.perf_counter() - start), 1))
        if not passed:
            return


# --- the steps ------------------------------------------------------------------------------------------------------


def _window() -> str:
    """The whole window is drawn, with its icons and with a font that has letters."""
    app = _application()
    window = MainWindow(app)
    try:
        window.show()
        app.processEvents()
        _expect(window.isVisible(), "the window did not open")
        shot = window.grab()
        _expect(_n_colours(shot) > 16, "the window is empty")
        _expect(not application_icon().pixmap(64).isNull(), "the application's icon is missing")
        _expect(not line_icon("send", "#000000").isNull(), "the icons are missing")
        return f"{shot.width()} x {shot.height()} on the platform {app.platformName()}"
    finally:
        window.close()
        window.deleteLater()


def _plot() -> str:
    """A graph shows what it is given."""
    measured = Measurements()
    graphs = GraphsPage(Theme(_application()), measured)
    try:
        graphs.resize(480, 360)
        graphs.show()
        _application().processEvents()
        before = graphs.grab().toImage()
        now = time.monotonic()
        for i in range(20):
            measured.add_speed(SpeedSample(now - 2.0 + i / 10, "decode", 1, 10.0 + i, 256))
        deadline = time.monotonic() + 5.0
        while graphs.grab().toImage() == before:
            _expect(time.monotonic() < deadline, "the graph stayed empty")
            _application().processEvents()
            time.sleep(0.02)
        return "a curve of 20 points"
    finally:
        graphs.close()
        graphs.deleteLater()


def _formula() -> str:
    """A formula is drawn by its process, with its font, and has ink."""
    drawer = FormulaDrawer(_application())
    latex = r"x_{1,2} = \frac{-b \pm \sqrt{b^2 - 4ac}}{2a}"
    try:
        deadline = time.monotonic() + 30.0
        while (formula := drawer.look(latex, display=True)) is None:
            _expect(
                drawer.is_waiting(latex, display=True), "the formula was not drawn: its libraries or font are missing"
            )
            _expect(time.monotonic() < deadline, "the process that draws formulas did not answer")
            _application().processEvents()
            time.sleep(0.01)
    finally:
        drawer.stop()
    image = picture(formula, "#000000", 32.0, 1.0)
    inked = sum(image.pixelColor(x, y).alpha() > 128 for x in range(image.width()) for y in range(image.height()))
    _expect(inked > 300, f"the formula has only {inked} pixels of ink")
    return f"{image.width()} x {image.height()} pixels, {inked} of them ink"


def _store(file: Path) -> str:
    """A conversation is there after the database was closed, and is found by a word of it."""
    told = Conversation(new_conversation_id(), "Self-test", 0)
    message = Message(new_message_id(), told.id, None, "user", PROMPT)
    store = Store(file)
    store.put_conversation(told)
    store.put_message(message)
    store.close()
    with closing(Store(file)) as store:
        _expect(store.all_messages(told.id) == (message,), "a stored message came back changed")
        _expect(bool(store.search("symbol")), "the full-text search found nothing")
        return "written, closed, read again, searched"


def _attachments(folder: Path) -> str:
    """The text of a PDF and of a DOCX file is read, each in its own process."""
    said = []
    for suffix in ("pdf", "docx"):
        file = folder / f"selftest.{suffix}"
        shutil.copy(paths.resources_dir() / "selftest" / file.name, file)
        found = read_file(file).attachment
        _expect(PROMPT in found.text, f"{file.name} was read as {found.text[:80]!r}")
        said.append(f"{suffix.upper()} {len(found.text)} characters")
    return ", ".join(said)


def _model_hub() -> str:
    """The client of the model hub and what it asks with are there: it says that nobody answers."""
    try:
        Hub(NOBODY).models("a/b")
    except HubUnreachable as error:
        return str(error)
    raise Failure(f"{NOBODY} answered")


def _found_models(folder: Path) -> str:
    """A model in another program's folder is listed on the page of models, with what its header says."""
    home = folder / "home"
    file = home / ".cache" / "lm-studio" / "models" / "someone" / "small" / "found.gguf"
    file.parent.mkdir(parents=True)
    try:
        file.hardlink_to(_embedded_file())
    except OSError:  # on another disk
        shutil.copy(_embedded_file(), file)
    (found,) = find_models(known_folders({}, home))
    facts = facts_of(found)
    _expect(not facts.problem, facts.problem)
    fit = fit_of(found, SMALL, available_bytes())
    window = MainWindow(_application())
    page = ModelsPage(window.kit)
    try:
        page.show_rows((row_of(facts, fit, None, Machine(0.0, False, available_bytes())),), Machine(0.0, False, 0))
        page.show()
        _application().processEvents()
        _expect(page.chosen is not None and page.chosen.path == file, "the page of models does not show it")
        return f"{found.application}: {facts.title}, {facts.architecture}, fits with {fit.n_ctx:,} tokens"
    finally:
        page.close()
        page.deleteLater()
        window.deleteLater()


def _languages() -> str:
    """The window in every language there is a catalogue for; which one the system would get."""
    app = _application()
    texts = {}
    try:
        system = install_language(app, "system")
        for language in ("en", *paths.catalogues()):
            _expect(install_language(app, language) == language, f"the catalogue of {language} cannot be used")
            window = MainWindow(app)
            texts[language] = window.action_set["chat.new"].label
            window.deleteLater()
        _expect(len(set(texts.values())) == len(texts), f"two languages say the same: {texts}")
        return f"system: {system}; " + ", ".join(f"{name}: {text}" for name, text in texts.items())
    finally:
        install_language(app, "en")


def _model() -> str:
    """The embedded model is there and llama.cpp loads it."""
    with _embedded() as model:
        info = model.info()
        return f"{info.name}: {info.n_params / 1e6:.0f} M parameters, {info.size_bytes / 1e6:.0f} MB"


def _greedy_text() -> str:
    """A turn through template, prefill, decode and sampler gives the known text."""
    said, stats = _answered(None)
    _expect(said == ANSWER, f"the model said {said!r} instead of {ANSWER!r}")
    _expect(stats.generated_tokens == N_TOKENS, f"{stats.generated_tokens} tokens instead of {N_TOKENS}")
    return f"{said!r}, {stats.decode_tok_s:.0f} tok/s, {engine_version()}"


def _server() -> str:
    """Another program asks over HTTP, whole and streaming."""
    from kvdesk.server.config import Key, ServerConfig, new_key
    from kvdesk.server.server import Server

    key = new_key()
    config = ServerConfig(port=0, keys=(Key(key),))
    with running(_embedded_file(), SMALL) as host, closing(Server(host, config, Sampling(temperature=0.0))) as server:
        server.start()
        body = {"messages": [{"role": "user", "content": PROMPT}], "max_tokens": N_TOKENS}
        headers = {"authorization": f"Bearer {key}"}
        with httpx2.Client(base_url=server.url, headers=headers, timeout=_START_S, trust_env=False) as client:
            whole = client.post("/chat/completions", json=body).raise_for_status().json()
            streamed = client.post("/chat/completions", json={**body, "stream": True}).raise_for_status().text
        said = whole["choices"][0]["message"]["content"]
        cached = whole["usage"]["prompt_tokens_details"]["cached_tokens"]
        _expect(said == ANSWER, f"the answer is {said!r}")
        _expect(streamed.rstrip().endswith("data: [DONE]"), "the stream has no end")
        return f"a client was answered over HTTP, whole and streaming ({cached} tokens were in the cache)"


def _terminal() -> str:
    """A line is typed and shown as `kvdesk chat` does."""
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output.plain_text import PlainTextOutput

    from kvdesk.terminal.screen import Screen

    shown = io.StringIO()
    with create_pipe_input() as keys:
        keys.send_text("hello\r")
        screen = Screen(keys=keys, output=PlainTextOutput(shown))
        _expect(screen.ask() == "hello", "what was typed did not come")
        screen.write(ANSWER)
        screen.say("")
    _expect(ANSWER in shown.getvalue(), f"{shown.getvalue()!r} was shown")
    return "a line is typed, and an answer shown"


def _safe_mode() -> str:
    """The same text from an engine in its own process."""
    said, _ = _answered(ProcessBackend)
    _expect(said == ANSWER, f"the child process said {said!r} instead of {ANSWER!r}")
    return f"{said!r} from a child process"


def _connecting() -> str:
    """What connects to servers is there: it says that nobody answers; and there is a keyring, or it says that too."""
    import keyring

    ring = type(keyring.get_keyring())
    try:
        find_server(NOBODY, "")
    except ServerError as error:
        return f"{error} Keys: {ring.__module__}.{ring.__qualname__}"
    raise Failure(f"{NOBODY} answered")


def _tools() -> str:
    """What connects to tool servers is there: it says that nobody answers."""
    told: queue.SimpleQueue[object] = queue.SimpleQueue()
    server, keys = ToolServer(name="nobody", url=f"{NOBODY}/mcp"), ServerKeys(paths.keys_file())
    keys.use(tokens_of(server.url), "")
    with closing(ToolClients(told.put, keys)) as clients:
        clients.start(server, {})
        while not (isinstance(state := told.get(timeout=60.0), ServerState) and state.state == "failed"):
            _expect(isinstance(state, ServerState), f"{NOBODY} answered")
    return state.sentence


def _compaction() -> str:
    """Two conversations with a hole between them are moved together; the next token of both stays as likely."""
    with _embedded() as model, _context(model) as context:
        for turn in range(4):
            for seq in (0, 1):
                _decode(context, seq, 6, first=100 * seq + 10 * turn)
        context.memory.seq_rm(0, 18, -1)
        snapshot, blob = context.memory.snapshot(), context.states.get()
        plan = plan_compaction(snapshot, Layout.BY_CONVERSATION)
        _expect(not plan.changes_nothing, "there was nothing to compact")
        context.states.set(blob, carry=True)  # without it the next tokens would fall into the hole, before older cells
        expected = _next(context)
        context.states.set(permute_blob(blob, plan, context.memory.mirror.geometry), carry=True)
        _verified(context)
        cells = context.memory.snapshot().maps[0].streams[0]
        _expect(np.array_equal(cells.token, plan.after[0].streams[0].token), "cells lie where they were not planned")
        apart = max(float(np.abs(a - b).max()) for a, b in zip(expected, _next(context), strict=True))
        _expect(apart <= 1e-3, f"a logit changed by {apart:.3g}")
        old = snapshot.maps[0].streams[0]
        return f"{cells.used} cells, high-water mark {old.high_water} -> {cells.high_water}"


def _audit() -> str:
    """After operations of every kind each cell is as the engine's own saved state has it."""
    with _embedded() as model, _context(model) as context:
        _decode(context, 0, 20, first=10)
        context.memory.seq_cp(0, 1, 0, 12)
        _decode(context, 1, 5, first=50)
        context.memory.seq_rm(0, 4, 8)
        context.memory.seq_add(0, 8, -1, -4)
        context.auditor.audit(whole=True)
        _verified(context)
        return f"{context.memory.snapshot().maps[0].streams[0].used} cells compared"


# --- what the steps share -------------------------------------------------------------------------------------------


def _application() -> QApplication:
    app = QApplication.instance()
    if app is None:
        qInstallMessageHandler(_show_warning)
        app = QApplication(["kvdesk"])
    assert isinstance(app, QApplication)
    return app


def _show_warning(_kind: QtMsgType, _context: QMessageLogContext, text: str) -> None:
    if "propagateSizeHints" not in text:  # the offscreen platform says so of every window
        sys.stderr.write(f"{text}\n")


def _embedded_file() -> Path:
    file = paths.embedded_model()
    if file is None:
        raise Failure("the embedded model is not part of this installation")
    return file


def _embedded() -> closing[Model]:
    return closing(Model(_embedded_file()))


def _answered(make_backend: Callable[[Emit], Backend] | None) -> tuple[str, TurnStats]:
    """The greedy answer to PROMPT of an engine in this process (None), or elsewhere."""
    with closing(HeadlessEngine(make_backend=make_backend)) as headless:
        headless.do(LoadModel(LocalFile(_embedded_file()), SMALL))
        chat = HeadlessChat(headless)
        ended = chat.answer(PROMPT, Sampling(temperature=0.0, max_tokens=N_TOKENS))
        return chat.messages[-1].text, ended.stats


def _context(model: Model) -> closing[Context]:
    """A context in which the engine prints every cell, each compared with the map."""
    return closing(checked_context(model, SMALL, inspect=MAPS))


def _decode(context: Context, seq: int, n: int, *, first: int) -> None:
    """`n` tokens with ids from `first` on, at the end of the sequence."""
    decoded = context.decode(Batch.of(seq, context.memory.seq_pos_max(seq) + 1, range(first, first + n), "last"))
    _expect(decoded.rc == 0, f"llama_decode answered {decoded.rc}")


def _next(context: Context) -> list[NDArray[np.float32]]:
    """The logits of both sequences after one more token each, which stays."""
    logits = []
    for seq in (0, 1):
        _decode(context, seq, 1, first=7)
        logits.append(context.logits())
    return logits


def _verified(context: Context) -> None:
    verification = context.memory.verification
    _expect(verification.state == "verified", f"the map is not verified: {verification.state} {verification.detail}")


def _n_colours(picture: QPixmap) -> int:
    small = picture.toImage().scaled(320, 200).convertToFormat(QImage.Format.Format_RGB32)
    return len({small.pixel(x, y) for x in range(small.width()) for y in range(small.height())})


def _expect(so: bool, otherwise: str) -> None:
    if not so:
        raise Failure(otherwise)
