"""A long column of messages that scrolls: only those near what is seen have widgets, the others a height."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from math import ceil
from typing import Final

import shiboken6
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QScrollArea, QWidget

from kvdesk.message import MessageId
from kvdesk.ui.widgets.timers import every
from kvdesk.values import dataclass

SIDE_PX: Final = 24
TOP_PX: Final = 16
GAP_PX: Final = 24
NEAR: Final = 1.5  # viewports above and below what is seen that get widgets while nothing else is to do
KEPT: Final = 60  # widgets; those farthest from what is seen are dropped first
LISTED: Final = 1_000  # messages that have a place at first, and more each time one scrolls to the first of them
_HIDDEN_MADE: Final = 4  # widgets at the end of a list that is not on the screen
_HIGHEST_PX: Final = 16_000_000  # Qt's widgets are no higher
_ROUNDS: Final = 8  # widgets that turn out lower than estimated bring more of them into sight


@dataclass(slots=True)
class Place:
    """Of one message in the column. `height` is estimated until there was a widget once."""

    id: MessageId
    height: int
    top: int = 0
    widget: QWidget | None = None


class Gradual(QWidget):
    """A widget that may be made in steps, so that nothing stalls."""

    def make_next(self) -> bool:
        """The next step. False if none is left."""
        return False


class MessageList(QScrollArea):
    """Follows its end while one reads there. Elsewhere what one reads stays where it is, whatever grows above or below.

    make     a widget for a message, inside of another, at once or gradually
    width_in  of the column of text in a list of this width
    is_kept  whether the widget must not be dropped: something is going on in it
    """

    def __init__(
        self,
        make: Callable[[MessageId, QWidget, bool], Gradual],
        width_in: Callable[[int], int],
        is_kept: Callable[[QWidget], bool],
    ) -> None:
        super().__init__()
        self.setViewport(QWidget())  # PySide6 takes 20 ms to find out what one of Qt's own is
        self._make, self._width_in, self._is_kept = make, width_in, is_kept
        self._half_made: tuple[Place, Gradual] | None = None
        self._earlier: list[MessageId] = []  # messages that have no place yet
        self._estimate: Callable[[MessageId], int] = lambda _: 0
        self._places: list[Place] = []
        self._of: dict[MessageId, Place] = {}
        self.is_following = True
        """The end is seen, and stays so when something is added."""
        self._anchor: tuple[QWidget, int] | None = None  # something that is seen, and how far below the upper edge
        self._arranging = False
        self._column = _Column(self.arrange)
        self._column.setObjectName("column")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(self._column)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click on a button in it leaves the keyboard where it was
        self._filler = every(self, 0, self._on_filler)
        self.verticalScrollBar().valueChanged.connect(self._on_value_changed)

    def widget_at(self, message: MessageId) -> QWidget | None:
        """None if the message is not among these, or far from what is seen."""
        if self._half_made is not None and self._half_made[0].id == message:
            return self._half_made[1]
        place = self._of.get(message)
        return place.widget if place is not None else None

    def made(self) -> dict[MessageId, QWidget]:
        """The widgets there are, the oldest message first."""
        half_made, widget = self._half_made or (None, None)
        there = ((place.id, widget if place is half_made else place.widget) for place in self._places)
        return {message: widget for message, widget in there if widget is not None}

    def reset(self, messages: Sequence[MessageId], estimate: Callable[[MessageId], int]) -> None:
        """These messages and no others, with the heights they may have; the end is seen. `estimate`: the height of one,
        asked when it gets a place.
        """
        for place in self._places:
            _drop(place)
        self._drop_half_made()
        self._earlier, self._estimate = [*messages[:-LISTED]], estimate
        self._places = [Place(message, estimate(message)) for message in messages[-LISTED:]]
        self._of = {place.id: place for place in self._places}
        self.is_following, self._anchor = True, None
        self.arrange()

    def append(self, message: MessageId, height: int) -> None:
        """One more at the end, which is seen from now on."""
        self._places.append(Place(message, height))
        self._of[message] = self._places[-1]
        self.is_following = True
        self.arrange()

    def remove(self, messages: Collection[MessageId]) -> None:
        """These messages go; what is seen of the others stays where it is."""
        self._drop_half_made()
        for place in self._places:
            if place.id in messages:
                _drop(place)
        self._earlier = [known for known in self._earlier if known not in messages]
        self._places = [place for place in self._places if place.id not in messages]
        self._of = {place.id: place for place in self._places}
        if self._anchor is not None and not (shiboken6.isValid(self._anchor[0]) and not self._anchor[0].isHidden()):
            self._anchor = None
        self.arrange()

    def scroll_to(self, message: MessageId) -> QWidget | None:
        """Bring a message into sight; its widget, None if it is not among these."""
        while message not in self._of and self._list_earlier():
            pass
        place = self._of.get(message)
        if place is None:
            return None
        if place.widget is None:
            self.is_following = False
            self.verticalScrollBar().setValue(place.top - GAP_PX)
        if place.widget is None:  # the list is not on the screen
            self._realize(place)
            self.arrange()
        if place.widget is not None:
            self.ensureWidgetVisible(place.widget, 0, GAP_PX)
        return place.widget

    def arrange(self) -> None:
        """Take over the heights that have changed, and put everything in its place."""
        if self._arranging:
            return
        self._arranging = True
        try:
            for _ in range(_ROUNDS):
                self._lay_out()
                wanted = self._seen() if self.isVisible() else self._places[-_HIDDEN_MADE:]
                missing = [place for place in wanted if place.widget is None]
                if not missing:
                    break
                for place in missing:
                    self._realize(place)
        finally:
            self._arranging = False
        self._remember()
        self._filler.start()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        for widget in self.made().values():
            self._fit(widget)
        self.arrange()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        for widget in self.made().values():  # hidden ones are not laid out
            self._fit(widget)
        self.arrange()

    # --- places -------------------------------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        left, width = self._text_place()
        top = TOP_PX
        for place in self._places:
            place.top = top
            if place.widget is not None:
                place.height = _height(place.widget, width)
                place.widget.setGeometry(left, top, width, place.height)
            top += place.height + GAP_PX
        bottom = top - GAP_PX + TOP_PX if self._places else 0
        bar = self.verticalScrollBar()
        self._column.resize(self.viewport().width(), max(bottom, self.viewport().height()))
        if self.is_following:
            bar.setValue(bar.maximum())
        elif self._anchor is not None and shiboken6.isValid(self._anchor[0]):
            seen, below = self._anchor
            bar.setValue(seen.mapTo(self._column, QPoint(0, 0)).y() - below)

    def _text_place(self) -> tuple[int, int]:
        """Left edge and width of the column of text: over the composer (`centred`), with or without a scroll bar."""
        room = self.width() - 2 * SIDE_PX
        width = max(min(self._width_in(self.width()), room - 2 * round(room / 102)), 1)
        return ceil((self.width() - width) / 2), width

    def _between(self, top: int, bottom: int) -> list[Place]:
        first = max(bisect_right(self._places, top, key=lambda place: place.top) - 1, 0)
        found = []
        for place in self._places[first:]:
            if place.top >= bottom:
                break
            if place.top + place.height > top:
                found.append(place)
        return found

    def _seen(self) -> list[Place]:
        top = self.verticalScrollBar().value()
        return self._between(top, top + self.viewport().height())

    def _remember(self) -> None:
        """What is at the upper edge, to find it there again when something above it has changed."""
        top = self.verticalScrollBar().value()
        self._anchor = None
        for place in self._seen():
            if place.widget is not None:
                inside = QPoint(place.widget.width() // 2, max(top - place.top, 0))
                seen = place.widget.childAt(inside) or place.widget
                self._anchor = seen, seen.mapTo(self._column, QPoint(0, 0)).y() - top
                return

    def _list_earlier(self) -> bool:
        """Give places to messages before the first. False without such messages, or without room for them."""
        more = self._earlier[-LISTED:]
        places = [Place(message, self._estimate(message)) for message in more]
        if not more or self._column.height() + sum(place.height + GAP_PX for place in places) > _HIGHEST_PX:
            return False
        del self._earlier[-LISTED:]
        self._places[:0] = places
        self._of |= {place.id: place for place in places}
        self._remember()
        self.arrange()
        return True

    # --- widgets ------------------------------------------------------------------------------------------------------

    def _realize(self, place: Place) -> None:
        if self._half_made is not None and self._half_made[0] is place:
            widget = self._half_made[1]
            while widget.make_next():
                pass
        else:
            widget = self._make(place.id, self._column, False)
        self._put(place, widget)

    def _put(self, place: Place, widget: Gradual) -> None:
        if self._half_made is not None and self._half_made[0] is place:
            self._half_made = None
        place.widget = widget
        widget.setVisible(True)
        self._fit(widget)

    def _drop_half_made(self) -> None:
        if self._half_made is not None:
            self._half_made[1].deleteLater()
            self._half_made = None

    def _fit(self, widget: QWidget) -> None:
        widget.resize(self._text_place()[1], widget.height())
        settle(widget)

    def _on_value_changed(self, value: int) -> None:
        if self._arranging:
            return
        self.is_following = self.verticalScrollBar().maximum() - value <= GAP_PX
        if value == 0 and self._earlier:
            self._list_earlier()
        elif any(place.widget is None for place in self._seen()):
            self._remember()
            self.arrange()
        else:
            self._remember()
            self._filler.start()

    def _on_filler(self) -> None:
        """A step of one more widget near what is seen; afterwards those that are far away go."""
        if self._half_made is not None:
            place, widget = self._half_made
            if not widget.make_next():
                self._put(place, widget)
                self.arrange()
            return
        top, high = self.verticalScrollBar().value(), self.viewport().height()
        near = self._between(round(top - NEAR * high), round(top + (1 + NEAR) * high))
        missing = [place for place in near if place.widget is None]
        if missing:
            middle = top + high // 2
            nearest = min(missing, key=lambda place: abs(place.top + place.height // 2 - middle))
            self._half_made = nearest, self._make(nearest.id, self._column, True)
            return
        self._filler.stop()
        far = [place for place in self._places if place.widget is not None and place not in near]
        for place in sorted(far, key=lambda place: -abs(place.top - top))[: max(len(far) - KEPT, 0)]:
            if place.widget is not None and not self._is_kept(place.widget):
                _drop(place)


class _Column(QWidget):
    """Holds the widgets; tells when one of them wants another height."""

    def __init__(self, changed: Callable[[], None]) -> None:
        super().__init__()
        self._changed = changed

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self._changed()
        return super().event(event)


def settle(widget: QWidget) -> None:
    """Lay out what has grown, from the inside out: left to Qt, each level would be painted before the next."""
    layout = widget.layout()
    if layout is None:
        return
    for child in widget.children():
        if isinstance(child, QWidget) and not child.isHidden():
            settle(child)
    layout.activate()


def settle_around(widget: QWidget, last: QWidget) -> None:
    """The same of one widget, and of those that it is inside of, up to `last`; what is beside it has not changed."""
    settle(widget)
    at: QWidget | None = widget
    while at is not None and at is not last:
        at = at.parentWidget()
        if at is not None and (layout := at.layout()) is not None:
            layout.activate()


def _height(widget: QWidget, width: int) -> int:
    layout = widget.layout()
    if layout is None:
        return widget.sizeHint().height()
    return layout.totalHeightForWidth(width) if layout.hasHeightForWidth() else layout.totalSizeHint().height()


def _drop(place: Place) -> None:
    if place.widget is not None:
        place.widget.hide()
        place.widget.deleteLater()
        place.widget = None
