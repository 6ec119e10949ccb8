"""The rendered prompt of a chat as the model gets it: every token in its colour, its id on hover."""

from bisect import bisect_right
from typing import Final

from PySide6.QtCore import QEvent
from PySide6.QtGui import QColor, QFont, QHelpEvent, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QToolTip, QWidget

from kvdesk.protocol.prompt import PromptPreview, PromptToken
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import ElidedLabel, label, plain_tip
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.palette import mix

_INSIDE: Final = "·"  # for a token in the middle of a character
_SHADES: Final = (0.10, 0.22)  # of two neighbouring tokens, so that one sees where one ends


class PromptView(QWidget):
    """The tokens, a line about all of them, and a line about the one under the caret."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._preview: PromptPreview | None = None
        self._starts: list[int] = []  # of each shown token, in the document
        self._counts = label("", tone="secondary", scale="small", wrap=True)
        self.text_edit = _TokenText(self)
        theme.give_font(self.text_edit, "mono_small")
        self.text_edit.cursorPositionChanged.connect(self._on_caret_moved)
        self._under_caret = ElidedLabel(n_lines=2, tone="secondary", family="mono")
        self._keys = [label("", scale="small", rich=True) for _ in range(3)]
        keys = boxes.row(*self._keys, boxes.Stretch(1), spacing=8)
        boxes.column(self._counts, keys, (self.text_edit, 1), self._under_caret, on=self, margins=0, spacing=4)
        theme.follow(self._on_look_changed)

    def show_preview(self, preview: PromptPreview | None, *, problem_is_told: bool = False) -> None:
        """Show the tokens of a prompt; None, or one with a problem: none. `problem_is_told`: where it is seen too."""
        before, self._preview = self._preview, preview
        if preview is None or preview.problem:
            self._counts.setText("" if preview is None or problem_is_told else preview.problem)
            without = tr("With this template there is no prompt.") if problem_is_told else _empty()
            self.text_edit.setPlaceholderText(without)
        else:
            self._counts.setText(_count(preview))
        if before is None or preview is None or _drawn(before) != _drawn(preview):
            self._draw()

    def token_at(self, place: int) -> int | None:
        """Index of the shown token at a place of the document; None if none is."""
        preview = self._preview
        index = bisect_right(self._starts, place) - 1
        if preview is None or index < 0 or index >= len(preview.tokens):
            return None
        return index

    def describe(self, index: int) -> str:
        """One line about a shown token: id, text, position, and whether it is in the cache."""
        assert self._preview is not None
        token, position = self._preview.tokens[index], self._preview.position(index)
        where = tr("in the cache") if position < self._preview.n_cached else tr("to be computed")
        kind = tr("special token") if token.is_special else tr("token")
        line = tr("{kind} {id} “{text}” at position {position}, {where}")
        shown = token.text.replace("\n", "↵").replace("\t", "⇥")
        return line.format(kind=kind, id=token.id, text=shown, position=f"{position:,}", where=where)

    def _draw(self) -> None:
        document, preview = self.text_edit.document(), self._preview
        place, caret = self.text_edit.verticalScrollBar().value(), self.text_edit.textCursor().position()
        self.text_edit.clear()
        self._starts = []
        self._under_caret.setText("")
        if preview is None:
            return
        formats = self._formats()
        cursor = QTextCursor(document)
        cursor.beginEditBlock()
        for index, token in enumerate(preview.tokens):
            position = preview.position(index)
            if index == preview.n_head and preview.n_left_out:
                words = tr("{n} tokens in the middle are not shown").format(n=f"{preview.n_left_out:,}")
                cursor.insertText(f"\n… {words} …\n", formats["left out"])
            self._starts.append(cursor.position())
            where = "cached" if position < preview.n_cached else "new"
            kind = "special " if token.is_special else ""
            cursor.insertText(_shown(token), formats[f"{kind}{where} {position % 2}"])
        cursor.endEditBlock()
        cursor.setPosition(min(caret, document.characterCount() - 1))
        self.text_edit.setTextCursor(cursor)
        self.text_edit.verticalScrollBar().setValue(place)

    def _formats(self) -> dict[str, QTextCharFormat]:
        colours = self._theme.colours
        found: dict[str, QTextCharFormat] = {}
        for where, hue in (("cached", colours.accent), ("new", colours.warning)):
            for i, share in enumerate(_SHADES):
                plain, special = QTextCharFormat(), QTextCharFormat()
                for form in (plain, special):
                    form.setBackground(QColor(mix(colours.raised, hue, share)))
                    form.setForeground(QColor(colours.text))
                special.setForeground(QColor(mix(hue, colours.text, 0.4)))
                special.setFontWeight(QFont.Weight.Bold)
                special.setFontItalic(True)
                found[f"{where} {i}"], found[f"special {where} {i}"] = plain, special
        found["left out"] = QTextCharFormat()
        found["left out"].setForeground(QColor(colours.secondary))
        return found

    def _on_caret_moved(self) -> None:
        index = self.token_at(self.text_edit.textCursor().position())
        words = "" if index is None else self.describe(index)
        self._under_caret.setText(words)
        self.text_edit.setAccessibleDescription(words)

    def _on_look_changed(self) -> None:
        colours = self._theme.colours
        names = (tr("in the cache"), tr("to be computed"), tr("special"))
        for key, name, hue in zip(self._keys, names, (colours.accent, colours.warning, colours.raised), strict=True):
            key.setText(f" {name} ")
            style = "font-style: italic; font-weight: 600;" if hue == colours.raised else ""
            key.setStyleSheet(f"background: {mix(colours.raised, hue, _SHADES[1])}; border-radius: 3px; {style}")
        self._draw()


class _TokenText(QPlainTextEdit):
    """Read only; the caret can be moved by keys."""

    def __init__(self, owner: PromptView) -> None:
        super().__init__()
        self._owner = owner
        self.setReadOnly(True)
        self.setProperty("boxed", True)
        self.setTabChangesFocus(True)
        self.setTextInteractionFlags(self.textInteractionFlags() | self.textInteractionFlags().TextSelectableByKeyboard)
        self.setAccessibleName(tr("Prompt of this chat, token by token"))
        self.setPlaceholderText(_empty())

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            cursor = self.cursorForPosition(event.pos())
            place = cursor.position()
            if self.cursorRect(cursor).x() > event.pos().x():  # the nearer edge may be that of the next character
                place -= 1
            index = self._owner.token_at(place)
            if index is not None:
                QToolTip.showText(event.globalPos(), plain_tip(self._owner.describe(index)), self)
            return True
        return super().viewportEvent(event)


def _empty() -> str:
    return tr("The prompt of this chat appears here once a model is open.")


def _shown(token: PromptToken) -> str:
    """The text of a token, line ends visible."""
    return (token.text or _INSIDE).replace("\r", "\\r").replace("\n", "↵\n")


def _count(preview: PromptPreview) -> str:
    sentence = tr("{n} tokens: {cached} in the cache, {new} to be computed.").format(
        n=f"{preview.n_tokens:,}", cached=f"{preview.n_cached:,}", new=f"{preview.n_tokens - preview.n_cached:,}"
    )
    return f"{sentence} {preview.refused}".rstrip()


def _drawn(preview: PromptPreview) -> tuple[object, ...]:
    return preview.tokens, preview.n_cached, preview.n_left_out
