"""A call among the messages and its result, folded away: the tool, its arguments, tokens and seconds; while the call
waits for a person, the question.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QFrame, QWidget

from kvdesk.message import Message
from kvdesk.quantities import seconds_text, tokens_text
from kvdesk.session import Changed
from kvdesk.session.features import ToolDecision
from kvdesk.translation import marked, tr
from kvdesk.ui.messages.listed import Listed, Owner
from kvdesk.ui.messages.message_body import MessageBody
from kvdesk.ui.tools.words import arguments_text, pretty
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.announce import announce
from kvdesk.ui.widgets.collapsible import Collapsible
from kvdesk.ui.widgets.controls import label, push_button, set_tone, show_text
from kvdesk.ui.widgets.flow import Flow
from kvdesk.ui.widgets.kit import Kit

_DECISIONS: Final[tuple[tuple[ToolDecision, str, str], ...]] = (
    ("once", marked("Allow once"), marked("Run this call; the next one is asked about again")),
    ("tool", marked("Always this tool"), marked("Run it, and every later call of this tool of this server")),
    ("server", marked("Always this server"), marked("Run it, and every later call of any tool of this server")),
    ("deny", marked("Deny"), marked("Do not run it; the model is informed")),
)
_STATES: Final = {"stopped": marked("Stopped"), "interrupted": marked("Interrupted"), "failed": marked("Failed")}


class ToolMessage(Listed):
    """budget: what tools cost for this question so far, as a text; "" while this is not the last message."""

    def __init__(
        self, kit: Kit, owner: Owner, message: Message, budget: Callable[[Message], str], parent: QWidget | None = None
    ) -> None:
        super().__init__(owner, message, parent)
        self._kit, self._budget = kit, budget
        self._words: Sequence[str] = ()  # that are marked
        self._asked = False
        self._facts = label("", tone="secondary", scale="small")
        content = QWidget()
        self._arguments = MessageBody(kit.theme, plain=True, quiet=True)
        self._result = MessageBody(kit.theme, plain=True)
        self._over_result = label(tr("Result"), tone="secondary", scale="small")
        over_arguments = label(tr("Arguments"), tone="secondary", scale="small")
        shown = (over_arguments, self._arguments, self._over_result, self._result)
        boxes.column(*shown, on=content, margins=(20, 0, 0, 4), spacing=4)
        self.fold = Collapsible(kit.theme, "", content, self._facts)
        self.fold.toggled.connect(lambda _open: self._show_content())
        self._spent = label("", tone="secondary", scale="small")
        self._question = label("", wrap=True)
        self.buttons = {
            decision: push_button(
                tr(text),
                tip=tr(tip),
                scale="small",
                primary=decision == "once",
                clicked=partial(self._decide, decision),
            )
            for decision, text, tip in _DECISIONS
        }
        choices = Flow((8, 8))
        choices.show_parts(self.buttons.values())
        self._ask = QWidget()
        boxes.column(self._question, choices, on=self._ask, margins=(20, 0, 0, 4), spacing=8)
        card = QFrame()
        card.setProperty("card", "code")
        boxes.column(self.fold, self._ask, on=card, margins=(8, 4, 12, 4), spacing=2)
        boxes.column(card, self._spent, on=self, margins=0, spacing=4)
        self.destroyed.connect(kit.store.listen(self._on_changed, Changed.TOOLS))
        self.show_message(message)

    @property
    def selected_text(self) -> str:
        return self._result.selected_text or self._arguments.selected_text

    def mark(self, words: Sequence[str], at: int = -1, *, unfold: bool = True) -> QPoint:
        """Mark every place of the result where one of the words occurs, none without words; where number `at` is, or
        the first one. `unfold`: opens what hides it.
        """
        self._words = words
        if unfold:
            self.fold.button.setChecked(True)
        places = [self._result.mapTo(self, place) for place in self._result.mark(words, at, unfold=unfold)]
        return places[min(max(at, 0), len(places) - 1)] if places else QPoint(0, 0)

    def show_arrival(self) -> None:
        """Somebody was led here: the keyboard goes on from here."""
        self.fold.button.setFocus(Qt.FocusReason.OtherFocusReason)

    def show_message(self, message: Message) -> None:
        """Replace what is shown."""
        self.message = message
        use = message.use
        name = use.tool if use is not None else tr("Tool")
        arguments = arguments_text(use.arguments) if use is not None else ""
        self.fold.set_title(f"{name}({arguments})")
        self.setAccessibleName(f"{name}: {self._state()}")
        self._facts.setText(self._state())
        failed = message.state in ("failed", "interrupted") or (use is not None and use.failed)
        set_tone(self._facts, "warning" if failed else "secondary")
        show_text(self._spent, self._budget(message))
        self._show_content()
        self._show_question()

    def _state(self) -> str:
        message, use = self.message, self.message.use
        if message.state == "streaming":
            return tr("Waiting for you") if message.id in self._kit.store.tool_questions else tr("Runs…")
        if message.state != "complete" or use is None:
            return tr(_STATES.get(message.state, ""))
        parts = [tr("Pinned")] if message.pinned else []
        if use.failed:
            parts.append(tr("Failed"))
        if use.n_tokens:
            parts.append(tokens_text(use.n_tokens))
        if use.ms or not use.failed:
            parts.append(seconds_text(use.ms / 1e3))
        return "  ·  ".join(parts)

    def _show_content(self) -> None:
        if self.fold.is_open:
            use = self.message.use
            self._arguments.show_source(pretty(use.arguments) if use is not None else "")
            self._result.show_source(self.message.text)
            self._result.mark(self._words, unfold=False)
            for widget in (self._over_result, self._result):
                widget.setVisible(bool(self.message.text))

    def _show_question(self) -> None:
        asked = self._kit.store.tool_questions.get(self.message.id)
        if asked is not None:
            self._question.setText(
                tr("The model wants to call {tool} of the server {server}.").format(
                    tool=asked.tool, server=asked.server
                )
            )
        self._ask.setVisible(asked is not None)
        if asked is not None and not self._asked:
            self._asked = True
            self.fold.button.setChecked(True)  # what is allowed is seen
            announce(self, self._question.text())

    def _on_changed(self, *_heard: object) -> None:
        if self.message.state == "streaming":
            self.show_message(self.message)

    def _decide(self, decision: ToolDecision, _checked: bool = False) -> None:
        self.fold.button.setChecked(False)
        self._kit.commands.tools.decide(self.message.id, decision)
