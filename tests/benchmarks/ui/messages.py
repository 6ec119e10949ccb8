"""The messages part of `kvdesk bench ui`: opening and scrolling a long conversation, leaving it alone, and typing while
an answer streams into one. The real window; the answer is fed to it by hand, so that nothing else computes.
"""

import math
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from kvdesk.chat import Conversation
from kvdesk.message import Message, new_conversation_id, new_message_id
from kvdesk.protocol.chat import TextDelta
from kvdesk.protocol.experiment import Figure
from kvdesk.store.store import Store
from kvdesk.ui.shell.main_window import MainWindow
from tests.benchmarks.ui.frames import percentile
from tests.ui.samples import append_message
from tests.ui.wheel import turned

OPEN_MS = 200.0
FRAME_MS = 16.0
IDLE_SHARE = 0.01  # of a core
N_MESSAGES = 500
LONG_CHARS = 100_000
_OPENINGS = 5
_WHEEL_STEPS = 400
_IDLE_S = 5.0
_KEYS, _KEY_EVERY_S = 150, 0.041
_DELTA_EVERY_MS = 20  # 50 tokens a second
_WORDS = ("The", "keeper", "of", "the", "lighthouse", "climbs", "the", "stairs", "and", "counts", "them,", "nightly.")
_ANSWER = """The tank fills by $\\frac{{dV}}{{dt}} = q - k\\sqrt{{V}}$, here with **k = {i}**.

- the inflow is *constant*
- the outflow depends on the height
  1. at first it is small
  2. then it grows

```python
def step(v, q, k={i}, dt=0.1):
    return v + dt * (q - k * v ** 0.5)
```

| hour | level |
|-----:|------:|
| 1 | {i}.5 |
| 2 | {i}.8 |

{prose}
"""


def stored(path: Path, n: int = N_MESSAGES, n_chars: int = 0) -> Conversation:
    """Put a conversation of `n` messages into the database, of at least `n_chars` characters altogether."""
    conversation = Conversation(new_conversation_id(), f"{n} messages", 0)
    store = Store(path)
    prose = _prose(max(300, 2 * n_chars // n))
    messages: list[Message] = []
    for i in range(n):
        text = _ANSWER.format(i=i, prose=prose) if i % 2 else f"What happens in hour {i}?"
        parent = messages[-1].id if messages else None
        role = "assistant" if i % 2 else "user"
        messages.append(Message(new_message_id(), conversation.id, parent, role, text))  # type: ignore[arg-type]
    known = Conversation(conversation.id, conversation.title, 0, leaf=messages[-1].id)
    store.put_conversation(known)
    for message in messages:
        store.put_message(message)
    store.close()
    return known


def measure(
    window: MainWindow,
    long: Conversation,
    texts: Conversation,
    settle: Callable[[float], None],
    say: Callable[[str], None],
) -> tuple[list[Figure], dict[str, object]]:
    """The judged figures and the values behind them. `long` has N_MESSAGES messages, `texts` LONG_CHARS characters."""
    opened = []
    for _ in range(_OPENINGS):
        for conversation in (long, texts):
            opened.append(_opening_ms(window, conversation))
            settle(0.7)  # what is near is made
    say(f"opened in {max(opened):.0f} ms at most")
    _opening_ms(window, long)
    settle(2.0)
    began, began_s = time.process_time(), time.monotonic()
    settle(_IDLE_S)
    idle = (time.process_time() - began) / (time.monotonic() - began_s)
    say(f"idle: {idle:.2%} of a core")
    scrolled, between = _scrolling_ms(window)
    painting, rest = percentile(95, scrolled), percentile(95, between)
    say(f"scrolled: {painting:.1f} ms for event and paint (P95), {rest:.1f} ms between them")
    _opening_ms(window, texts)
    settle(1.0)
    typed, drawn = _typing_ms(window, texts, settle)
    key, rendering = percentile(99, typed), percentile(95, drawn)
    say(f"typed while an answer streams: {key:.1f} ms (P99); a rendering {rendering:.1f} ms (P95)")
    figures = [
        Figure(f"open_{N_MESSAGES}_messages_ms", max(opened)).at_most(OPEN_MS),
        Figure("scroll_p95_ms", painting).at_most(FRAME_MS),
        Figure("idle_share_of_a_core", idle).at_most(IDLE_SHARE),
        Figure("typing_p99_ms", key).at_most(FRAME_MS),
        Figure("rendering_p95_ms", rendering).at_most(FRAME_MS),
    ]
    values: dict[str, object] = {
        "opened_ms": [round(ms, 1) for ms in opened],
        "scroll_ms": _shares(scrolled),
        "between_scrolls_ms": _shares(between),
        "typing_ms": _shares(typed),
        "rendering_ms": _shares(drawn),
    }
    return figures, values


def _opening_ms(window: MainWindow, conversation: Conversation) -> float:
    """From choosing it to its last message on the screen."""
    view = window.chat.view
    begun = time.perf_counter()
    window.commands.select(conversation.id)
    painted = _Painted(view.viewport())
    while view.last != conversation.leaf or not painted.at_s:
        painted.at_s = 0.0 if view.last != conversation.leaf else painted.at_s
        QCoreApplication.processEvents()
        if time.perf_counter() - begun > 20.0:
            break
    painted.stop()
    return ((painted.at_s or math.inf) - begun) * 1e3


def _scrolling_ms(window: MainWindow) -> tuple[list[float], list[float]]:
    """Each turn of the wheel and its painting, upwards, and what the window does between one and the next."""
    view = window.chat.view
    viewport = view.viewport()
    scrolled, between = [], []
    for _ in range(_WHEEL_STEPS):
        event = turned(viewport)
        begun = time.perf_counter()
        QCoreApplication.sendEvent(viewport, event)
        viewport.repaint()
        ended = time.perf_counter()
        QCoreApplication.processEvents()
        scrolled.append((ended - begun) * 1e3)
        between.append((time.perf_counter() - ended) * 1e3)
    return scrolled, between


def _typing_ms(
    window: MainWindow, conversation: Conversation, settle: Callable[[float], None]
) -> tuple[list[float], list[float]]:
    """From the time at which each key is due to the painting of what was typed, and each rendering of the answer, while
    an answer of `LONG_CHARS` characters grows at the end of the conversation."""
    answer = Message(new_message_id(), conversation.id, conversation.leaf, "assistant", "", state="streaming")
    append_message(window, answer)
    window.store.apply(TextDelta(conversation.id, answer.id, _prose(LONG_CHARS // 5), (1,)))
    window.chat.view.verticalScrollBar().setValue(window.chat.view.verticalScrollBar().maximum())
    settle(1.5)
    edit = window.chat.composer.edit
    edit.setFocus()
    painted = _Painted(edit.viewport())
    typed: list[float] = []
    drawn: list[float] = []
    words = iter(_WORDS * 1000)

    def stream() -> None:
        begun = time.perf_counter()
        window.store.apply(TextDelta(conversation.id, answer.id, next(words) + " ", (1,)))
        if (ms := (time.perf_counter() - begun) * 1e3) > 0.5:  # the others only add to the text
            drawn.append(ms)

    stream_timer = QTimer(window, interval=_DELTA_EVERY_MS, timerType=Qt.TimerType.PreciseTimer)
    stream_timer.timeout.connect(stream)
    stream_timer.start()
    first_s = time.perf_counter() + 0.2
    for i in range(_KEYS):
        due_s = first_s + i * _KEY_EVERY_S
        while time.perf_counter() < due_s:
            QCoreApplication.processEvents()
            time.sleep(0.0005)
        painted.at_s = 0.0
        key, text = (Qt.Key.Key_Space, " ") if i % 6 == 5 else (Qt.Key.Key_A, "a")
        for kind in (QEvent.Type.KeyPress, QEvent.Type.KeyRelease):
            event = QKeyEvent(kind, key, Qt.KeyboardModifier.NoModifier, text)
            QCoreApplication.sendEvent(edit, event)
        while not painted.at_s and time.perf_counter() < due_s + 1.0:
            QCoreApplication.processEvents()
        typed.append((painted.at_s - due_s) * 1e3 if painted.at_s else math.inf)
    stream_timer.stop()
    painted.stop()
    window.chat.composer.set_text("")
    return typed, drawn


class _Painted(QObject):
    """When a widget was painted last, on the clock `time.perf_counter`; 0.0 before."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        self.at_s = 0.0
        widget.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:
            QTimer.singleShot(0, self._on_painted)
        return False

    def _on_painted(self) -> None:
        self.at_s = time.perf_counter()

    def stop(self) -> None:
        self._widget.removeEventFilter(self)
        self.deleteLater()


def _prose(n_chars: int) -> str:
    words, size, n = [], 0, 0
    while size < n_chars:
        word = _WORDS[n % len(_WORDS)] + ("\n\n" if n % 90 == 89 else " ")
        words.append(word)
        size += len(word)
        n += 1
    return "".join(words)


def _shares(values: list[float]) -> dict[str, float]:
    return {f"p{share}": round(percentile(share, values), 1) for share in (50, 95, 99, 100)}
