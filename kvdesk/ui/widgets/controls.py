"""Labels, buttons and other small controls used in several rooms of the window."""

from collections.abc import Callable
from html import escape
from typing import Final

from PySide6.QtCore import QEvent, QPoint, QSize, Qt, QTextBoundaryFinder, QTimer, SignalInstance
from PySide6.QtGui import QFontMetrics, QHelpEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QMenu,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QToolTip,
    QWidget,
)

from kvdesk.ui.widgets.access.direction import drawing_flags
from kvdesk.ui.widgets.style.theme import Theme

_STEPS: Final = 1_000  # of a line of progress
Clicked = Callable[..., object] | SignalInstance
"""What a click does."""


class IconButton(QToolButton):
    """A flat button with a line icon. `name` is what it does, for tooltip and screen reader."""

    def __init__(
        self,
        theme: Theme,
        icon: str,
        name: str,
        tip: str = "",
        ink: str = "secondary",
        *,
        clicked: Clicked | None = None,
    ) -> None:
        super().__init__()
        self._theme, self._icon, self._ink = theme, icon, ink
        self.setAccessibleName(name)
        self.setToolTip(tip or name)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # after a click one goes on where one was
        if clicked is not None:
            self.clicked.connect(clicked)
        theme.follow(self._on_look_changed)

    def set_icon_name(self, icon: str) -> None:
        if icon != self._icon:
            self._icon = icon
            self._on_look_changed()

    def confirm(self) -> None:
        """Show for a moment that it was done."""
        if (icon := self._icon) != "check":
            self.set_icon_name("check")
            QTimer.singleShot(1200, self, lambda: self.set_icon_name(icon))

    def set_ink(self, ink: str) -> None:
        """Draw it in another colour of the theme."""
        if ink != self._ink:
            self._ink = ink
            self._on_look_changed()

    def _on_look_changed(self) -> None:
        self.setIconSize(QSize(self._theme.px(16), self._theme.px(16)))
        self.setIcon(self._theme.icon(self._icon, getattr(self._theme.colours, self._ink)))


class ElidedLabel(QLabel):
    """A label of one line, or at most two, that ends in … if there is no room; its tooltip then begins with the text.
    `from_end`: of one line its end is shown, after a … .

    It draws its text itself: a new text of a QLabel lays out everything around it again, up to the window.
    """

    def __init__(
        self,
        text: str = "",
        n_lines: int = 1,
        *,
        tone: str = "",
        scale: str = "",
        weight: str = "",
        family: str = "",
        from_end: bool = False,
    ) -> None:
        super().__init__("\n".join(" " * n_lines))
        dress(self, tone=tone, scale=scale, weight=weight, family=family)
        self._mode = Qt.TextElideMode.ElideLeft if from_end else Qt.TextElideMode.ElideRight
        self.full_text, self._shown, self._n_lines = "", "", n_lines
        self._tip = ""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setText(text)

    @property
    def is_elided(self) -> bool:
        return self._shown.count("…") > self.full_text.count("…")

    def setText(self, text: str) -> None:
        if text != self.full_text:
            self.full_text = text
            self.setAccessibleName(text)
            self._elide()

    def _elide(self) -> None:
        metrics, room = self.fontMetrics(), max(self.contentsRect().width(), 0)
        if self._n_lines == 1:
            self._shown = metrics.elidedText(self.full_text, self._mode, room)
        else:
            self._shown = "\n".join(two_lines(self.full_text, metrics, room))
        self._show_tip()
        self.update()

    def setToolTip(self, tip: str) -> None:
        """What is said beside the text, whether that has room or not; plain text."""
        self._tip = tip
        self.setAccessibleDescription(tip)
        self._show_tip()

    def _show_tip(self) -> None:
        whole = self.full_text if self.is_elided else ""
        super().setToolTip(plain_tip(f"{whole}\n{self._tip}".strip()))

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        role, flags = self.foregroundRole(), self.alignment()
        if self._n_lines == 1:
            flags |= Qt.TextFlag.TextSingleLine
        box = self.contentsRect()
        self.style().drawItemText(
            painter, box, int(flags) | drawing_flags(self._shown), self.palette(), self.isEnabled(), self._shown, role
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._elide()


class NumberLabel(QLabel):
    """A label whose text changes many times a second. It is as wide as its widest text so far, `widest` at least, so
    that nothing around it moves, and nothing is laid out again.
    """

    def __init__(self, text: str = "", *, widest: str = "", tone: str = "", scale: str = "") -> None:
        super().__init__()
        dress(self, tone=tone, scale=scale)
        self._widest = widest
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(text)

    def reserve(self, widest: str) -> None:
        """Be as wide as this text from now on."""
        if widest != self._widest:
            self._widest = widest
            self._fit(self.text())

    def setText(self, text: str) -> None:
        if text != self.text():
            self._fit(text)
            super().setText(text)

    def _fit(self, text: str) -> None:
        metrics = self.fontMetrics()
        if metrics.horizontalAdvance(text) > metrics.horizontalAdvance(self._widest):
            self._widest = text
        size = QSize(metrics.horizontalAdvance(self._widest), metrics.height())
        if size != self.minimumSize():
            self.setFixedSize(size)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._fit(self.text())


class ElidedButton(QPushButton):
    """A push button whose text ends in … if there is no room."""

    def __init__(self, text: str = "", *, scale: str = "", quiet: bool = False) -> None:
        super().__init__(text)
        self.full_text = text
        dress(self, scale=scale, quiet=quiet)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def setText(self, text: str) -> None:
        if text == self.full_text:
            return
        self.full_text = text
        self.setAccessibleName(text)
        self.updateGeometry()
        parent = self.parentWidget()
        if (layout := parent.layout() if parent is not None else None) is not None:
            layout.activate()  # at once: else a longer text would be cut until the next turn of the loop
        self._elide()

    def sizeHint(self) -> QSize:
        return self._hint(self.full_text)

    def minimumSizeHint(self) -> QSize:
        return self._hint(self.full_text[:4] + "…" if len(self.full_text) > 5 else self.full_text)

    def _hint(self, text: str) -> QSize:
        """The style's own hint, were the button to show `text`."""
        shown = super().sizeHint()
        metrics = self.fontMetrics()
        change = metrics.horizontalAdvance(text) - metrics.horizontalAdvance(self.text())
        return QSize(shown.width() + change, shown.height())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._elide()

    def _elide(self) -> None:
        room = self.width() - (self.sizeHint().width() - self.fontMetrics().horizontalAdvance(self.full_text))
        room += 2  # the style's hint of another text may be a pixel less, and so is a width that is no whole number
        super().setText(self.fontMetrics().elidedText(self.full_text, Qt.TextElideMode.ElideRight, max(room, 0)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def event(self, event: QEvent) -> bool:
        return (self.text() != self.full_text and whole_tip(self, event, self.full_text)) or super().event(event)


class ThinProgress(QProgressBar):
    """A line of 2 px that fills; invisible, but keeping its place, when there is nothing to wait for."""

    def __init__(self, name: str) -> None:
        super().__init__(textVisible=False)
        self.setFixedHeight(2)
        self.setMinimumWidth(1)
        self.setAccessibleName(name)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setRetainSizeWhenHidden(True)
        self.setSizePolicy(policy)
        self.set_share(None)

    def set_share(self, share: float | None) -> None:
        """0.0 to 1.0, or None for nothing under way."""
        self.setUpdatesEnabled(False)  # else each value is painted at once, before all else that waits for it
        self.setMaximum(_STEPS)
        self.setValue(round(_STEPS * (share or 0.0)))
        self.setUpdatesEnabled(True)
        self.setVisible(share is not None)

    def set_busy(self) -> None:
        """Something is under way; its progress is not known."""
        self.setMaximum(0)
        self.show()


def on_ground(widget: QWidget, pane: str) -> None:
    """Give a widget the ground of a "panel", or of the "window"."""
    widget.setProperty("pane", pane)
    widget.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)


def has_focus(widget: QWidget) -> bool:
    """Whether a widget, or one in it, has the focus; in a window behind another: whether it gets it again."""
    focus: QWidget | None = widget.window().focusWidget()  # the stubs do not know that there may be none
    return focus is not None and (focus is widget or widget.isAncestorOf(focus))


class Rule(QFrame):
    """A line of one pixel between panes."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("rule", True)
        self.setFixedHeight(1)


def dress(widget: QWidget, **properties: str | bool) -> None:
    """Properties that the style sheet knows; none that is empty."""
    for name, value in properties.items():
        if value:
            widget.setProperty(name, value)


def push_button(
    text: str,
    *,
    tip: str = "",
    name: str = "",
    scale: str = "",
    clicked: Clicked | None = None,
    primary: bool = False,
    quiet: bool = False,
) -> QPushButton:
    """A button with properties the style sheet knows. `name`: what a screen reader says, if that is not its text."""
    result = QPushButton(text)
    result.setToolTip(tip)
    if name:
        result.setAccessibleName(name)
    dress(result, scale=scale, primary=primary, quiet=quiet)
    if clicked is not None:
        result.clicked.connect(clicked)
    return result


def link_button(text: str, *, tip: str = "", name: str = "", clicked: Clicked | None = None) -> QToolButton:
    """A button that looks like a link in small words."""
    result = QToolButton()
    result.setText(text)
    result.setToolTip(tip)
    if name:
        result.setAccessibleName(name)
    dress(result, link="true", scale="small")
    if clicked is not None:
        result.clicked.connect(clicked)
    return result


def tab_button(text: str, *, tip: str = "", name: str = "", checked: bool = False) -> QToolButton:
    """A button that shows a part of a page while it is pressed."""
    result = QToolButton()
    result.setText(text)
    result.setToolTip(tip)
    result.setAccessibleName(name or text)
    result.setCheckable(True)
    result.setChecked(checked)
    result.setProperty("tab", True)
    return result


def pop_up(menu: QMenu | None, at: QPoint) -> None:
    """Open a menu there on the screen, and delete it when it closes. None: there is nothing to choose."""
    if menu is not None:
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(at)


def below(widget: QWidget) -> QPoint:
    """The lower left corner of a widget on the screen, where its menu opens."""
    return widget.mapToGlobal(QPoint(0, widget.height()))


def label(
    text: str,
    *,
    tone: str = "",
    scale: str = "",
    weight: str = "",
    family: str = "",
    rich: bool = False,
    wrap: bool = False,
    selectable: bool = False,
) -> QLabel:
    """A label of plain text with properties the style sheet knows."""
    result = QLabel(text)
    if wrap:
        result.setWordWrap(True)
    if not rich:
        result.setTextFormat(Qt.TextFormat.PlainText)
    if selectable:
        result.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    dress(result, tone=tone, scale=scale, weight=weight, family=family)
    return result


def two_lines(text: str, metrics: QFontMetrics, room: int) -> tuple[str, ...]:
    """A text in at most two lines of `room` pixels, broken where its script allows it: between words, and anywhere in
    Chinese; a longer one ends in …
    """
    if metrics.horizontalAdvance(text) <= room:
        return (text,)
    finder = QTextBoundaryFinder(QTextBoundaryFinder.BoundaryType.Line, text)
    units, first, rest = text.encode("utf-16-le", "surrogatepass"), "", text  # boundaries count UTF-16 units
    while (end := finder.toNextBoundary()) > 0:
        line = units[: 2 * end].decode("utf-16-le", "surrogatepass")
        if metrics.horizontalAdvance(line.rstrip()) > room:
            break
        first, rest = line, text[len(line) :]
    elided = Qt.TextElideMode.ElideRight
    if not first.strip(" ·"):
        return (metrics.elidedText(text, elided, room),)
    return first.rstrip(" ·"), metrics.elidedText(rest.lstrip(" ·"), elided, room)


def plain_tip(text: str) -> str:
    """A tooltip that shows `text` as it is. Qt takes a tooltip with tags for rich text: a title or a journal that came
    from elsewhere could name a picture on another computer, which would be asked for it.
    """
    return f"<qt>{escape(text).replace(chr(10), '<br>')}</qt>" if "<" in text else text


def whole_tip(widget: QWidget, event: QEvent, text: str) -> bool:
    """Where `event` asks for the tooltip of a widget that has no room for its text: show all of that, over the tip."""
    if not isinstance(event, QHelpEvent) or event.type() != QEvent.Type.ToolTip:
        return False
    tip = widget.toolTip()
    rich = tip.startswith("<qt>")
    shown = tip.replace("<qt>", f"<qt>{escape(text)}<br>", 1) if rich else plain_tip(f"{text}\n{tip}".strip())
    QToolTip.showText(event.globalPos(), shown, widget)
    return True


def restyle(widget: QWidget, name: str, value: str | bool) -> None:
    """Change a property that the style sheet knows; it is asked again only if the value differs."""
    if widget.property(name) != value:
        widget.setProperty(name, value)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def show_text(words: QLabel, text: str, tone: str | None = None) -> None:
    """Show a text, or no label without one. `tone`: None leaves it as it is."""
    words.setText(text)
    words.setVisible(bool(text))
    if tone is not None:
        set_tone(words, tone)


def set_tone(widget: QWidget, tone: str) -> None:
    """Change a label's tone."""
    restyle(widget, "tone", tone)
