"""Under a message: while the engine reads, how far it is; then why the answer ended and what it cost."""

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QEvent
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from kvdesk.message import FEW_TOKENS, Message, ended_early, finish_of, is_limit_note
from kvdesk.quantities import rate_text
from kvdesk.translation import marked, plural, tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton, ThinProgress, label, link_button
from kvdesk.ui.widgets.kit import Kit
from kvdesk.viewmodel.cells.readout import reasons, stats_parts, stats_tip

_STATE_WORDS: Final = {"interrupted": marked("Interrupted"), "failed": marked("Failed")}
_GAP_PX: Final = 8  # between the buttons and the line
_WHY_GAP_PX: Final = 4


def finish_word(answer: Message) -> str:
    """Why it ended early, in a few words; "" if the sentence over the line says it, or if it is complete."""
    match finish_of(answer):
        case "limit":
            return tr("Length limit reached")
        case "stop string":
            return tr("Stop string reached")
        case "context full":
            return tr("Context full")
        case "stopped":
            return tr("Stopped by you")
        case "edited":
            return tr("Edited by you")
        case _:
            return ""


def note_of(message: Message, overflow: str) -> str:
    """Why the answer is not simply complete; "" if the line below says it. `overflow`: what a full context did."""
    if finish_of(message) == "limit" and is_limit_note(message.note):
        return ""
    if message.state == "streaming":
        return message.note or overflow
    if message.state == "stopped":
        word = tr("Ended") if message.note else ""
    else:
        word = tr(_STATE_WORDS.get(message.state, ""))
    if word and message.note:
        return tr("{word}. {note}").format(word=word, note=message.note)
    return message.note or word


class Waiting(QWidget):
    """Between sending and the first token: what the engine is reading, and how far it is."""

    def __init__(self) -> None:
        super().__init__()
        self._text = label(tr("Waiting for the engine…"), tone="secondary", scale="small")
        self._bar = ThinProgress(tr("Reading the prompt"))
        boxes.column(self._text, self._bar, on=self, margins=(0, 4, 0, 4), spacing=8)

    def show_prompt(self, reused: int, prompt: int) -> None:
        if not prompt:
            return  # nobody says how long it is
        text = plural(
            "Reading 1 new token, {reused} are in the cache already",
            "Reading %n new tokens, {reused} are in the cache already",
            prompt - reused,
        )
        self._text.setText(text.format(reused=f"{reused:,}"))
        self._bar.set_share(0.0)

    def show_prefill(self, done: int, total: int, tok_s: float) -> None:
        speed = f"  ·  {rate_text(tok_s)} tok/s" if tok_s and done >= FEW_TOKENS else ""
        text = tr("Reading the prompt: {done} of {total} tokens").format(done=f"{done:,}", total=f"{total:,}")
        self._text.setText(text + speed)
        self._bar.set_share(done / total if total else 1.0)


class MessageFoot(QWidget):
    """Why it ended and what it cost, in one quiet line, and what can be done with it."""

    def __init__(self, kit: Kit, copy: Callable[[], None]) -> None:
        super().__init__()
        theme = kit.theme
        self._kit = kit
        self._answer: Message | None = None
        self._lines: tuple[str, ...] = ("",)  # why it ended and what it cost, shorter and shorter
        self._stats = ElidedLabel(tone="secondary", scale="small")
        self._stats.setObjectName("answerStats")
        self._copy = IconButton(theme, "copy", tr("Copy this answer"), clicked=copy)
        self._copy.clicked.connect(self._copy.confirm)
        again = tr("Answer again (Ctrl+R)")
        self._again = IconButton(theme, "again", tr("Answer again"), again, clicked=self._answer_again)
        self._continue = IconButton(theme, "play", tr("Continue the answer"), clicked=kit.act("chat.continue"))
        why = tr("Why the first token came when it did, and what was reused; Esc closes it")
        self._ask = link_button(tr("Why?"), tip=why)
        self._ask.setCheckable(True)
        self._why = label("", tone="secondary", scale="small", wrap=True)
        self._why.hide()
        self._ask.toggled.connect(self._why.setVisible)
        self._row = boxes.row(
            self._copy,
            self._again,
            self._continue,
            boxes.Gap(_GAP_PX),
            (self._stats, 1),
            boxes.Gap(_WHY_GAP_PX),
            self._ask,
            boxes.Stretch(),
            margins=0,
            spacing=0,
        )
        boxes.column(self._row, self._why, on=self, margins=0, spacing=4)
        self._switch: QWidget | None = None

    def add_switch(self, switch: QWidget) -> None:
        """The way to other versions, in the same row as what can be done with this one."""
        self._switch = switch
        self._row.insertWidget(self._row.indexOf(self._continue), switch)

    def close_why(self) -> bool:
        """Whether they were shown until now."""
        was_open = self._ask.isChecked()
        self._ask.setChecked(False)
        return was_open

    def show_answer(self, answer: Message, *, is_last: bool, why_not_continued: str) -> None:
        """Only the last answer can be made again or continued. `why_not_continued`: by this engine; "" if it can."""
        self._answer, stats = answer, answer.stats
        if stats is not None and not stats.prompt_tokens:
            stats = None  # the turn never began: nothing was reused because nothing was asked
        word, cost = finish_word(answer), stats_parts(stats) if stats else ()
        # shorter and shorter: what *Why?* says too goes first
        lines = ((word, *cost), (word, *cost[2:]), (word, *cost[3:]), (word,))
        self._lines = tuple(dict.fromkeys("  ·  ".join(filter(None, line)) for line in lines if any(line))) or ("",)
        self._stats.setToolTip(stats_tip(stats) if stats else "")
        why = reasons(stats) if stats else ""
        self._why.setText(why)
        self._ask.setVisible(bool(why))
        self._copy.setVisible(bool(answer.text))
        self._again.setVisible(is_last)
        self._continue.setVisible(is_last and ended_early(answer))
        self._continue.setEnabled(not why_not_continued)
        self._continue.setToolTip(why_not_continued or tr("Continue where it ended: only new tokens are computed"))
        self._arrange()

    def _arrange(self) -> None:
        """All is in one row: the buttons stay at the left, and the line is as long as there is room beside them."""
        metrics = self._stats.fontMetrics()
        buttons = (self._copy, self._again, self._continue, self._ask, self._switch)
        others = sum(one.sizeHint().width() for one in buttons if one is not None and not one.isHidden())
        room = self.width() - others - _GAP_PX - _WHY_GAP_PX
        widths = {line: metrics.horizontalAdvance(line) + 2 for line in self._lines}
        shown = next((line for line, width in widths.items() if width <= room), self._lines[-1])
        self._stats.setText(shown)
        self._stats.setAccessibleName(self._lines[0])
        self._stats.setMaximumWidth(widths[shown])

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.LayoutRequest:  # a button came or went
            self._arrange()
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _answer_again(self) -> None:
        if why := self._kit.store.why_not_answered:
            self._kit.store.notify(why)
        elif self._answer is not None:
            self._kit.commands.conversations.turns.regenerate(self._answer.conversation, message=self._answer.id)
