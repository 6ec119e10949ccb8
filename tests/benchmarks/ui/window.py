"""`kvdesk bench ui`: the real window with the real worker and model. What drawing costs, whether the interface stalls,
and what the open inspector takes from decoding: a ratio of answers that took turns, so that a drifting machine changes
both.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QEventLoop, QObject, Qt, QTimer

from kvdesk import paths
from kvdesk.app.application import Parts, build
from kvdesk.cli.bench import UI_ROWS
from kvdesk.errors import UserError
from kvdesk.experiments.outcome import Outcome
from kvdesk.experiments.statistics import SURE, error, figure, most_rounds, ratio, ratio_at_least
from kvdesk.message import TurnStats
from kvdesk.protocol.cache import ContextReady
from kvdesk.protocol.chat import EngineDied, EngineRestarted, TextDelta, TurnEnded
from kvdesk.protocol.experiment import Figure
from kvdesk.protocol.messages import CommandFailed, Event
from kvdesk.settings import ContextSettings
from tests.benchmarks.ui import messages
from tests.benchmarks.ui.frames import N_CELLS, frame_times, percentile

FRAME_MS = 16.7
STALL_MS = 50.0
SPEED = 0.95
REFRESHES_PER_S = 15.0
QUESTION = "Explain to a curious child, in many sentences, how a lighthouse keeper spends a stormy night."
MAX_TOKENS = 320
_BEAT_MS = 5
_LIMIT_S = 180.0
_DRAWN_AT = (1920, 1080)
_FIRST_START_S = 3.0
"""After which a new home has measured the memory's bandwidth (`ModelLibrary.ask_machine`): beside that, frames take
twice as long."""


class Heartbeat(QObject):
    """A timer of 5 ms; what a beat comes later than that is a stall of the event loop."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.stalls_ms: list[float] = []
        self._last = 0.0
        self._timer = QTimer(self, interval=_BEAT_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._on_beat)

    def start(self) -> None:
        self._last = time.perf_counter()
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    def _on_beat(self) -> None:
        now = time.perf_counter()
        self.stalls_ms.append(max(0.0, (now - self._last) * 1e3 - _BEAT_MS))
        self._last = now


class _DrivenWindow(QObject):
    """The application, driven: every step waits in the real event loop."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.window, self.controller = parts.window, parts.controller
        self.began_s = self.ended_s = 0.0  # time.monotonic() at the first text of an answer, and at its end
        self._ready: ContextReady | None = None
        self._ended: TurnEnded | None = None
        self._failed: UserError | None = None
        parts.controller.event_applied.connect(self._on_event)

    def wait(self, until: Callable[[], bool], look_ms: int = 20) -> None:
        """Run the event loop and look every `look_ms`. Raises UserError where something failed or nothing happens for
        minutes.
        """
        loop = QEventLoop()
        clock = QTimer(interval=look_ms)
        deadline = time.monotonic() + _LIMIT_S

        def look() -> None:
            if until() or self._failed is not None or time.monotonic() > deadline:
                loop.quit()

        clock.timeout.connect(look)
        clock.start()
        loop.exec()
        clock.stop()
        if self._failed is not None:
            raise self._failed
        if not until():
            raise UserError("The application did not answer in time.")

    def settle(self, seconds: float) -> None:
        """Run the event loop for so long, and look once: looking every 20 ms took 0.5 % of a core, half of what an idle
        window may take.
        """
        self.wait(lambda: True, round(seconds * 1e3))

    def wait_for_context(self) -> None:
        self.wait(lambda: self._ready is not None)

    def use_context(self, context: ContextSettings) -> None:
        """Make the context anew with these settings, unless it has them."""
        if context == self.controller.settings.context:
            return
        self._ready = None
        self.window.commands.rebuild(context, "nothing")
        self.wait_for_context()

    def answer(self, *, on_lab: bool = False, heart: Heartbeat | None = None) -> TurnStats:
        """One answer in a new conversation, which is deleted afterwards. `on_lab`: the laboratory is looked at. `heart`
        beats until the deletion, which opens a chat of 500 messages (`messages` judges how long that takes).
        """
        self.window.commands.new_chat()
        if on_lab:
            self.window.rooms.show_room("lab")
        self.settle(0.1)  # a person types for longer
        conversation = self.controller.selected
        assert conversation is not None
        self._ended, self.began_s = None, 0.0
        if heart is not None:
            heart.start()
        self.controller.conversations.send(conversation, QUESTION)
        self.wait(lambda: self._ended is not None)
        assert self._ended is not None
        self.settle(0.2)
        if heart is not None:
            heart.stop()
        self.window.rooms.show_chats()
        self.controller.conversations.delete(conversation)
        self.settle(0.2)
        return self._ended.stats

    def set_inspector(self, shown: bool) -> None:
        if self.window.inspector.isHidden() == shown:
            self.window.shown_settings.toggle_inspector()
        self.settle(0.2)

    def _on_event(self, event: Event) -> None:
        match event:
            case ContextReady():
                self._ready = event
            case TextDelta():
                self.began_s = self.began_s or time.monotonic()
            case TurnEnded():
                self._ended, self.ended_s = event, time.monotonic()
            case CommandFailed() | EngineRestarted() | EngineDied():
                self._failed = UserError(event.sentence, event.detail)


def run(
    model: Path, context: ContextSettings, rounds: int, say: Callable[[str], None], only: Sequence[str] = ()
) -> dict[str, object]:
    """Run everything, or the rows of `only`, on the settings file that is in force; returns figures, the values behind
    them, and whether each bar was reached. Raises UserError.

    `rounds`: at least; open and closed are compared until the ratio is sure, at most `most_rounds`; a single
    round, as those of `--against` are, is one of them.
    """
    wanted = set(only) or set(UI_ROWS)
    long, texts = (
        messages.stored(paths.database_file()),
        messages.stored(paths.database_file(), n=100, n_chars=messages.LONG_CHARS),
    )
    parts = build(str(model))
    driven = _DrivenWindow(parts)
    judged: list[Figure] = []
    values: dict[str, object] = {}
    try:
        parts.window.resize(*_DRAWN_AT)
        parts.window.show()
        driven.wait_for_context()
        driven.set_inspector(True)
        driven.settle(_FIRST_START_S)
        if "frames" in wanted:
            frames = frame_times(parts.window.inspector.cell_map, say)
            longest = max(v for mode in frames.values() for v in mode.values())
            judged.append(Figure("frame_p99_ms", longest).at_most(FRAME_MS))
            values["frames_ms"] = {mode: {k: round(v, 2) for k, v in times.items()} for mode, times in frames.items()}
        parts.window.resize(1280, 800)
        if "messages" in wanted:
            found, values["messages"] = messages.measure(parts.window, long, texts, driven.settle, say)
            judged += found
        if "decoding" in wanted:
            runs = {"default": context, str(N_CELLS): context.model_copy(update={"n_ctx": N_CELLS})}
            decoding = {}
            for name, settings in runs.items():
                driven.use_context(settings)
                decoded = _decoding(driven, name, rounds, say)
                judged += _judged_decoding(name, decoded)
                decoding[name] = _rounded(decoded)
            values["decoding"] = decoding
        if "lab" in wanted:
            driven.use_context(context)
            beside_lab = _beside_lab(driven, rounds, say)
            judged.append(ratio_at_least("decode_lab_over_chats", SPEED, beside_lab[True], beside_lab[False]))
            values["decode_lab_over_chats_standard_error"] = round(error(beside_lab[True], beside_lab[False]), 4)
    finally:
        parts.window.close()
        parts.controller.shut_down()
    return Outcome(judged, values).as_json()


def _judged_decoding(name: str, values: dict[str, list[float]]) -> list[Figure]:
    """Of stalls the median: one hiccup of the system is nobody's fault."""
    stalls, refreshes = values["longest_stall_ms"], values["refreshes_per_s"]
    speeds = values["open_tok_s"], values["closed_tok_s"]
    return [
        figure(f"longest_stall_ms_n_ctx_{name}", stalls).at_most(STALL_MS),
        figure(f"map_refreshes_per_s_n_ctx_{name}", refreshes).at_least(REFRESHES_PER_S),
        ratio_at_least(f"decode_open_over_closed_n_ctx_{name}", SPEED, *speeds),
    ]


def _decoding(driven: _DrivenWindow, name: str, rounds: int, say: Callable[[str], None]) -> dict[str, list[float]]:
    """Answers with the inspector open and closed in turns, two of each a round, so that a machine that drifts changes
    both. In the first `rounds` one more with it open, whose stalls are measured: the heartbeat itself takes time from
    decoding. Neighbouring answers differ by 5 to 10 % without any reason, so one goes on until the ratio is sure.
    """
    found: dict[str, list[float]] = {
        f"{state}_{what}": [] for what in ("tok_s", "ui_thread_cores") for state in ("open", "closed")
    }
    found |= {"stalls_ms": [], "longest_stall_ms": [], "refreshes_per_s": []}
    for number in range(most_rounds(rounds) + 1):  # the first round warms up
        if number > rounds and error(found["open_tok_s"], found["closed_tok_s"]) <= SURE:
            break
        for shown in _order(number):
            driven.set_inspector(shown)
            cpu, wall = time.thread_time(), time.perf_counter()
            speed = driven.answer().decode_tok_s
            share = (time.thread_time() - cpu) / (time.perf_counter() - wall)
            if number:
                state = "open" if shown else "closed"
                found[f"{state}_tok_s"].append(speed)
                found[f"{state}_ui_thread_cores"].append(share)
                if shown:
                    found["refreshes_per_s"].append(_refreshes_per_s(driven))
        if 0 < number <= rounds:
            stalls = _stalls_ms(driven)
            found["stalls_ms"] += stalls
            found["longest_stall_ms"].append(max(stalls))
        if number:
            say(
                f"n_ctx {name}, round {number}: open {found['open_tok_s'][-1]:.1f}, closed "
                f"{found['closed_tok_s'][-1]:.1f} tok/s; {_so_far(found['open_tok_s'], found['closed_tok_s'])}, "
                f"longest stall {max(found['longest_stall_ms']):.1f} ms"
            )
    driven.set_inspector(True)
    return found


def _beside_lab(driven: _DrivenWindow, rounds: int, say: Callable[[str], None]) -> dict[bool, list[float]]:
    """tok/s of answers while the laboratory is shown (True) or their chat, in turns; until their ratio is sure."""
    speeds: dict[bool, list[float]] = {True: [], False: []}
    for number in range(most_rounds(rounds)):
        if number >= rounds and error(speeds[True], speeds[False]) <= SURE:
            break
        for on_lab in _order(number):
            speeds[on_lab].append(driven.answer(on_lab=on_lab).decode_tok_s)
        say(f"lab shown, round {number + 1}: {_so_far(speeds[True], speeds[False])}")
    return speeds


def _order(number: int) -> tuple[bool, ...]:
    """With it (True) and without: twice each in a round, who begins changes."""
    return (True, False, False, True) if number % 2 else (False, True, True, False)


def _so_far(ours: Sequence[float], theirs: Sequence[float]) -> str:
    return f"so far {ratio(ours, theirs):.3f} with a standard error of {error(ours, theirs):.3f}"


def _refreshes_per_s(driven: _DrivenWindow) -> float:
    """Of the map, from the first text of the last answer to its end."""
    times = tuple(driven.window.inspector.cell_map.clock._refreshes)
    return sum(driven.began_s < at <= driven.ended_s for at in times) / (driven.ended_s - driven.began_s)


def _stalls_ms(driven: _DrivenWindow) -> list[float]:
    """How late the beats of a timer came during an answer with the inspector open."""
    driven.set_inspector(True)
    heart = Heartbeat(driven)
    driven.answer(heart=heart)
    return heart.stalls_ms


def _rounded(values: dict[str, list[float]]) -> dict[str, object]:
    stalls = values["stalls_ms"]
    kept: dict[str, object] = {name: [round(v, 3) for v in vs] for name, vs in values.items() if name != "stalls_ms"}
    return kept | {
        "open_over_closed_standard_error": round(error(values["open_tok_s"], values["closed_tok_s"]), 4),
        "stall_p99_ms": round(percentile(99, stalls), 1),
        "longest_stalls_ms": [round(s, 1) for s in sorted(stalls)[-5:]],
    }
