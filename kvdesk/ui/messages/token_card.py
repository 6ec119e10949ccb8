"""Under an answer: one of its tokens, what else was likely in its place, and what going on with another one costs."""

from collections.abc import Callable, Sequence
from functools import partial
from math import exp
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QPushButton, QWidget

from kvdesk.message import Message
from kvdesk.policies.forecast import in_seconds
from kvdesk.protocol.chat import TokenProb, TurnPreview
from kvdesk.protocol.logprobs import unpack
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.announce import announce
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton, ThinProgress, label, push_button
from kvdesk.ui.widgets.kit import Kit
from kvdesk.viewmodel.chat.token_surprise import candidates, percent, shown, words

_BAR_PX: Final = 72
_ROW_PX: Final = 26  # as high as a button
_BUTTON_PX: Final = 9  # before the text of a button


class TokenCard(QFrame):
    """Left and Right go to the token before and the next one. `moved`: another token is shown; `closed`: none is."""

    def __init__(self, kit: Kit, moved: Callable[[int], None], closed: Callable[[], object]) -> None:
        super().__init__()
        self._kit, self._moved, self._closed = kit, moved, closed
        self._message: Message | None = None
        self.at = 0
        self.setProperty("card", "ask")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        theme, to_left, to_right = kit.theme, tr("The token before (Left)"), tr("The next token (Right)")
        before = IconButton(theme, "chevron-left", tr("The token before"), to_left, clicked=lambda: self.step(-1))
        after = IconButton(theme, "chevron-right", tr("The next token"), to_right, clicked=lambda: self.step(1))
        close = IconButton(theme, "close", tr("Close"), tr("Close (Esc)"), clicked=closed)
        self._words = label("", scale="small", weight="strong", wrap=True)
        self._price = label("", tone="secondary", scale="small", wrap=True)
        self._price.setContentsMargins(4, 0, 0, 0)  # as the table above it
        self._table = QWidget()
        head = boxes.row(before, after, (self._words, 1), close, spacing=4)
        self._column = boxes.column(head, self._table, self._price, on=self, margins=(8, 4, 4, 8), spacing=4)
        self.buttons: list[QPushButton] = []

    @property
    def price(self) -> str:
        """What going on with another token costs; "" until that is known."""
        return self._price.text()

    def show_token(self, message: Message, at: int) -> None:
        """Number `at` of an answer's tokens, or the nearest there is."""
        known = unpack(message.probabilities)
        self._message, self.at = message, min(max(at, 0), len(known) - 1)
        one = known[self.at]
        self._words.setText(words(one))
        place = tr("Token {n} of {all}").format(n=f"{self.at + 1:,}", all=f"{len(known):,}")
        self.setAccessibleName(f"{place}. {words(one)}")
        announce(self, self.accessibleName())
        self._price.setText("")
        self._fill(candidates(one), one.chosen.token)
        if self.buttons:
            self._kit.commands.conversations.turns.preview_token(message.conversation, message.id, self.at)

    def show_preview(self, preview: TurnPreview) -> None:
        """What going on with another token would cost."""
        self._price.setText(price(preview))
        for button in self.buttons:
            button.setAccessibleDescription(self.price)

    def step(self, by: int) -> None:
        """Go to another token, which many are further on."""
        if self._message is not None:
            self._moved(self.at + by)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
        else:
            self.step(step)

    def _fill(self, probs: Sequence[TokenProb], chosen: int) -> None:
        table = QWidget()
        grid = boxes.grid(12, 2, 0, 0, 0, 1, on=table, margins=(4, 0, 0, 0))
        self.buttons = []
        for row, prob in enumerate(probs):
            number, bar = label(percent(prob), scale="small"), ThinProgress(tr("Probability"))
            number.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            bar.set_share(exp(prob.logprob))
            bar.setMaximumWidth(self._kit.theme.px(_BAR_PX))
            grid.setRowMinimumHeight(row, self._kit.theme.px(_ROW_PX))
            grid.addWidget(label(shown(prob), family="mono", scale="small"), row, 0)
            grid.addWidget(number, row, 1)
            grid.addWidget(bar, row, 2)
            choice = self._choice(prob, is_chosen=prob.token == chosen)
            is_button = isinstance(choice, QPushButton)
            grid.addWidget(choice, row, 3, Qt.AlignmentFlag.AlignLeft if is_button else Qt.AlignmentFlag(0))
        self._column.replaceWidget(self._table, table)
        boxes.drop(self._column, self._table)
        self._table = table

    def _choice(self, prob: TokenProb, *, is_chosen: bool) -> QWidget:
        """What can be done with this token."""
        if is_chosen or prob.hidden:
            why_not = ElidedLabel(
                tr("in the answer") if is_chosen else tr("a control token"), tone="secondary", scale="small"
            )
            why_not.setToolTip("" if is_chosen else tr("There is no text to continue"))
            why_not.setContentsMargins(self._kit.theme.px(_BUTTON_PX), 0, 0, 0)
            return why_not
        button = push_button(
            tr("Take this one"),
            tip=tr("The answer goes on from there, in a branch beside this one"),
            name=tr("Take “{token}” ({percent}) instead").format(token=shown(prob), percent=percent(prob)),
            quiet=True,
            scale="small",
            clicked=partial(self._take, prob.token),
        )
        store = self._kit.store
        if why := store.why_busy or store.why_not_continued:
            button.setEnabled(False)
            button.setToolTip(why)
        self.buttons.append(button)
        return button

    def _take(self, token: int) -> None:
        if (message := self._message) is not None:
            at = self.at
            self._closed()
            self._kit.commands.conversations.turns.take_token(message.conversation, message.id, at, token)


def price(preview: TurnPreview) -> str:
    """What going on with another token costs, in a sentence."""
    if preview.refused:
        return preview.refused
    n, reused = preview.n_prefill, f"{preview.n_reused:,}"
    if n == 1:
        return tr("Another one costs 1 token: the {n} before it are in the cache.").format(n=reused)
    said = tr("Another one costs {n} tokens: {reused} of those before it can be reused.")
    said = said.format(n=f"{n:,}", reused=reused)
    ms = preview.first_token_ms
    return said if ms is None else f"{said[:-1]}, {in_seconds(ms)}."
