"""A home as kvdesk leaves it, and what happens to homes: files damaged, swapped, replaced by something else, forbidden.

Writes files and rows; the home itself is made by the engine and the store.
"""

import hashlib
import json
import os
import random
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import apsw
import pytest

from kvdesk import paths
from kvdesk.backends.local.cache_manager.saved_states import SavedStateStore
from kvdesk.chat import Conversation
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.message import storable
from kvdesk.policies import swap
from kvdesk.policies.swap import Limits, StateKind
from kvdesk.protocol.cache import UsePolicy
from kvdesk.protocol.chat import LoadModel
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import CachePolicy, ContextSettings, Sampling, Settings
from kvdesk.store.settings_file import save_settings
from kvdesk.store.store import Store
from kvdesk.values import replace

CONTEXT: Final = ContextSettings(n_ctx=2048, n_seq_max=1, n_batch=512, n_threads=1, n_threads_batch=1)
WORDS: Final = ("amber", "birch", "cedar", "delta")
"""One for each chat: its texts and titles are full of it, so that text in the wrong place is recognized."""
ROOMY: Final = Limits(1 << 30, 1 << 30)
DATABASE: Final = "kvdesk.sqlite3"


@dataclass(frozen=True, slots=True)
class Home:
    """The original: its folder, its chats' word, messages' text by id, and the digests of the saved states."""

    folder: Path
    word_of: dict[str, str]
    texts: dict[str, tuple[str, str]]  # message -> conversation, text
    states: dict[str, tuple[str, list[int], str]]  # key -> conversation, tokens, sha256 of the state
    kind: StateKind


def make_home(folder: Path, model: Path) -> Home:
    """Four chats held with a model, stored; every one but the last has left the cache for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KVDESK_HOME", str(folder))
        patch.setattr(swap, "PAYS", 0.0)  # so small a model is read again sooner than its state
        settings = Settings(model=str(model), context=CONTEXT, cache=CachePolicy(prefill_ahead=False))
        save_settings(settings, paths.settings_file())
        headless = HeadlessEngine()
        store = Store(paths.database_file())
        word_of: dict[str, str] = {}
        texts: dict[str, tuple[str, str]] = {}
        try:
            headless.do(UsePolicy(CachePolicy(memory_mb=0), paths.states_dir()))
            headless.do(LoadModel(LocalFile(model), CONTEXT))
            for word in WORDS:
                chat = HeadlessChat(headless)
                for turn in range(3):
                    chat.answer(f"{word} {turn}: " + f"{word} " * 20, Sampling(temperature=0.0, max_tokens=12))
                word_of[chat.id] = word
                store.put_conversation(Conversation(chat.id, f"About {word}", WORDS.index(word), chat.messages[-1].id))
                for message in chat.messages:
                    # Long texts lie on pages of their own, which a damaged database may attach to another message.
                    text = message.text if message.role == "assistant" else message.text + f" {word}" * 900
                    store.put_message(replace(message, text=text))
                    texts[str(message.id)] = (str(chat.id), storable(text))
            kind = session_of(headless).runtime.cache_manager.swapper.saved_states.kind
        finally:
            headless.close()
            store.close()
        return Home(folder, word_of, texts, states_in(folder, kind), kind)


def states_in(folder: Path, kind: StateKind) -> dict[str, tuple[str, list[int], str]]:
    """The saved states that would be used."""
    with closing(SavedStateStore(folder / "states", kind, ROOMY)) as saved:
        found: dict[str, tuple[str, list[int], str]] = {}
        for value in saved.values():
            state = saved._saved[value.key]
            if (blob := saved.take(state)) is not None:
                found[state.key] = (state.conversation, list(state.tokens), hashlib.sha256(blob).hexdigest())
        return found


# --- the damages ----------------------------------------------------------------------------------------------------

JUNK: Final = (b"", b"\x00" * 64, b"\xff\xfe\xfd", b"{}", b"[]", b"null", b"[" * 100_000, b"9" * 400, b"\xf0\x9f\x92")
NUMBERS: Final = (-(2**63), -1, 0, 3, 2**15, 2**31, 2**53, 2**63 - 1)
VALUES: Final[tuple[Any, ...]] = (None, True, -1, 0, 1e308, 2**70, "", "\ud800", "x" * 5000, [], {}, [[]], "/", "\x00")


def damage(home: Path, rng: random.Random) -> str:
    """Damage a copy of a home in one place or in some. Returns what was done."""
    done = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        one = rng.choice(DAMAGES)
        try:
            done.append(f"{one.__name__.strip('_')} {one(home, rng)}".strip())
        except (OSError, apsw.Error, ValueError, IndexError, TypeError, AttributeError):
            done.append(f"{one.__name__.strip('_')} impossible")  # after the damage before it
        if any(path.is_fifo() for path in home.rglob("*")):
            break  # whoever damages more would wait at the pipe for ever
    return ", ".join(done)


def _file(home: Path, rng: random.Random) -> Path:
    """Any file of the home, or one that is not there yet."""
    there = sorted(path for path in home.rglob("*") if path.is_file())
    new: tuple[str, ...] = (
        "loading.txt",
        "log/kvdesk.log",
        "log/crash.log",
        f"{DATABASE}-wal",
        f"{DATABASE}-shm",
        "window.socket",
    )
    new += (
        "settings.json.1.part",
        "settings.json.broken",
        "states/index.json.1.part",
        "preflight.json",
        "loading.txt.1.part",
    )
    path = rng.choice([*there, *(home / name for name in new)])
    path.parent.mkdir(exist_ok=True)
    return path


def _flipped(home: Path, rng: random.Random) -> str:
    path = _file(home, rng)
    data = bytearray(path.read_bytes()) if path.exists() else bytearray(rng.randbytes(200))
    for _ in range(rng.choice((1, 8, 200))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    return path.name


def _truncated(home: Path, rng: random.Random) -> str:
    path = _file(home, rng)
    data = path.read_bytes()
    path.write_bytes(data[: rng.choice((0, 1, 16, len(data) // 2, len(data) - 1))])
    return path.name


def _junk(home: Path, rng: random.Random) -> str:
    path = _file(home, rng)
    path.write_bytes(rng.choice((*JUNK, rng.randbytes(5000))))
    return path.name


def _replaced(home: Path, rng: random.Random) -> str:
    """Something else in the place of a file or a folder."""
    path = rng.choice((_file(home, rng), home / "states", home / "log", home / DATABASE, home / "settings.json"))
    if path.is_dir():
        for inside in sorted(path.rglob("*"), reverse=True):
            inside.unlink()
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    what = rng.choice(("nothing", "folder", "full folder", "pipe", "link to itself", "link to nothing", "link to null"))
    if "folder" in what:
        path.mkdir()
        if what == "full folder":
            (path / "inside").touch()
    elif what == "pipe":
        os.mkfifo(path)
    elif what != "nothing":
        path.symlink_to({"itself": path, "nothing": home / "none", "null": Path("/dev/null")}[what.rpartition(" ")[2]])
    return f"{path.name} by {what}"


def _forbidden(home: Path, rng: random.Random) -> str:
    path = rng.choice((home, home / "states", home / "log", _file(home, rng), _file(home, rng)))
    mode = rng.choice((0, 0o400, 0o500, 0o200, 0o444, 0o555))
    path.chmod(mode)
    return f"{path.name} {mode:o}"


def _settings(home: Path, rng: random.Random) -> str:
    path = home / "settings.json"
    found = json.loads(path.read_bytes())
    everything = json.loads(Settings().model_dump_json())
    names = []
    for _ in range(rng.choice((1, 3, 10))):
        table = rng.choice((None, "context", "sampling", "cache"))
        name = rng.choice(sorted(everything if table is None else everything[table]))
        (found if table is None else found.setdefault(table, {}))[name] = rng.choice((*VALUES, *NUMBERS))
        names.append(name)
    path.write_text(json.dumps(found))
    return " ".join(names)


def _pages(home: Path, rng: random.Random) -> str:
    """Pages of the database: bits, zeros, or one in another's place."""
    path = home / DATABASE
    data, size = bytearray(path.read_bytes()), 4096
    n = len(data) // size
    what = rng.choice(("flip", "zero", "swap", "copy", "garbage"))
    for _ in range(rng.choice((1, 1, 2, 8))):
        one, other = rng.randrange(n) * size, rng.randrange(1, n) * size
        if what == "flip":
            for _ in range(rng.choice((1, 16))):
                data[one + rng.randrange(size)] ^= 1 << rng.randrange(8)
        elif what == "zero":
            data[one : one + size] = bytes(size)
        elif what == "garbage":
            data[other + 8 : other + size] = rng.randbytes(size - 8)
        else:
            kept = data[one : one + size]
            data[one : one + size] = data[other : other + size]
            if what == "swap":
                data[other : other + size] = kept
    path.write_bytes(data)
    return what


def _rows(home: Path, rng: random.Random) -> str:
    """Values in rows that kvdesk never wrote there, another message's among them."""
    with closing(apsw.Connection(str(home / DATABASE))) as connection:
        table = rng.choice(("conversation", "message", "message", "message"))
        number = rng.choice([n for (n,) in connection.execute(f"SELECT number FROM {table}")])
        names = [(name, kind) for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({table})")]
        name, kind = rng.choice([pair for pair in names if pair[0] != "number"])
        value = {"INTEGER": str(rng.choice(NUMBERS)), "BLOB": f"x'{rng.randbytes(rng.randrange(40)).hex()}'"}.get(kind)
        if value is None:
            bad = ["x'ff41'", "x'00'", "x'f09f92'", f"x'{b'['.hex() * 50_000}'"]
            if name in ("leaf", "parent", "text"):
                of = "text" if name == "text" else "id"
                bad += [f"(SELECT {of} FROM message ORDER BY number LIMIT 1 OFFSET {rng.randrange(20)})"] * 4
            value = f"CAST({rng.choice(bad)} AS TEXT)"
        connection.execute(f"UPDATE {table} SET {name} = {value} WHERE number = {number}")
        return f"{table}.{name} = {value[:30]}"


def _version(home: Path, rng: random.Random) -> str:
    with closing(apsw.Connection(str(home / DATABASE))) as connection:
        name, value = rng.choice((("user_version", rng.choice((-1, 1, 5, 99))), ("application_id", 7)))
        connection.pragma(name, value)
        return f"{name} {value}"


def _states(home: Path, rng: random.Random) -> str:
    """Files of saved states in each other's place, and entries of their index."""
    index = home / "states" / "index.json"
    entries = json.loads(index.read_bytes())
    one, other = rng.sample(entries, 2)
    files = [home / "states" / f"{entry['key']}.kvstate" for entry in (one, other)]
    what = rng.choice(("files", "files and digests", "conversations", "tokens", "everything", "value"))
    if what.startswith("files") or what == "everything":
        first, second = (file.read_bytes() for file in files)
        files[0].write_bytes(second)
        files[1].write_bytes(first)
    swapped = {"files and digests": ("digest", "n_bytes", "packed"), "conversations": ("conversation",)}
    swapped |= {"tokens": ("tokens",), "everything": ("digest", "n_bytes", "packed", "conversation", "tokens", "spans")}
    for name in swapped.get(what, ()):
        one[name], other[name] = other[name], one[name]
    if what == "value":
        name = rng.choice(sorted(one))
        one[name] = rng.choice((*VALUES, *NUMBERS))
        what = f"{name} = {str(one[name])[:20]}"
    index.write_text(json.dumps(entries))
    return what


DAMAGES: Final[tuple[Callable[[Path, random.Random], str], ...]] = (
    *(_flipped, _truncated, _junk, _replaced, _replaced, _forbidden, _settings, _pages, _pages, _rows, _rows),
    *(_version, _states, _states),
)


def damaged_database(folder: Path, rng: random.Random) -> str:
    """Damage the database in a folder that has nothing else. Returns what was done."""
    one = rng.choice((_flipped, _truncated, _junk, _pages, _pages, _rows, _rows, _version))
    try:
        return f"{one.__name__.strip('_')} {one(folder, rng)}"
    except (OSError, apsw.Error, ValueError, IndexError):
        return "impossible"
