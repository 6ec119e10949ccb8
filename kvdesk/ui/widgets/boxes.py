"""Rows, columns and grids of widgets, each in one call."""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, TypeVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QBoxLayout, QGridLayout, QHBoxLayout, QLayout, QVBoxLayout, QWidget

Margins = tuple[int, int, int, int]


class Gap(NamedTuple):
    """Pixels between two items."""

    px: int


class Stretch(NamedTuple):
    """The room that is left, by its share of it."""

    share: int = 0


Thing = QWidget | QLayout
Item = Thing | tuple[Thing, int] | tuple[Thing, int, Qt.AlignmentFlag] | Gap | Stretch
"""A widget or a layout, alone, with its stretch, or with stretch and alignment."""
BoxT = TypeVar("BoxT", bound=QBoxLayout)
KeyT = TypeVar("KeyT", bound=Hashable)
RowT = TypeVar("RowT", bound=QWidget)


def row(
    *items: Item, on: QWidget | None = None, margins: Margins | int | None = None, spacing: int | None = None
) -> QHBoxLayout:
    """From the beginning of a line on. `on`: the widget that is laid out. What is not given is as the style has it."""
    return _filled(QHBoxLayout() if on is None else QHBoxLayout(on), items, margins, spacing)


def column(
    *items: Item, on: QWidget | None = None, margins: Margins | int | None = None, spacing: int | None = None
) -> QVBoxLayout:
    """From above. As `row`."""
    return _filled(QVBoxLayout() if on is None else QVBoxLayout(on), items, margins, spacing)


def grid(
    across: int, down: int, *stretch: int, on: QWidget | None = None, margins: Margins | int | None = None
) -> QGridLayout:
    """Empty. across, down: pixels between two columns, and between two rows; `stretch`: of the first columns."""
    box = QGridLayout() if on is None else QGridLayout(on)
    _set_margins(box, margins)
    box.setHorizontalSpacing(across)
    box.setVerticalSpacing(down)
    for column, share in enumerate(stretch):
        box.setColumnStretch(column, share)
    return box


def _set_margins(layout: QLayout, margins: Margins | int | None) -> None:
    if margins is not None:
        layout.setContentsMargins(*((margins,) * 4 if isinstance(margins, int) else margins))


def _filled(box: BoxT, items: tuple[Item, ...], margins: Margins | int | None, spacing: int | None) -> BoxT:
    _set_margins(box, margins)
    if spacing is not None:
        box.setSpacing(spacing)
    for item in items:
        match item:
            case Gap():
                box.addSpacing(item.px)
            case Stretch():
                box.addStretch(item.share)
            case (thing, stretch):
                _add(box, thing, stretch)
            case (thing, stretch, alignment):
                _add(box, thing, stretch, alignment)
            case _:
                _add(box, item)
    return box


def show_rows(layout: QBoxLayout, rows: dict[KeyT, RowT], keys: Sequence[KeyT], make: Callable[[KeyT], RowT]) -> None:
    """A row for each key, in this order, at the beginning of the layout. An existing row is not made again, so that the
    keyboard stays in it. `rows`: the existing ones, by their keys; it is changed.
    """
    for key in [key for key in rows if key not in keys]:
        drop(layout, rows.pop(key))
    for i, key in enumerate(keys):
        if key not in rows:
            rows[key] = make(key)
        if layout.indexOf(rows[key]) != i:
            layout.insertWidget(i, rows[key])


def drop(layout: QLayout, *widgets: QWidget) -> None:
    """Take widgets out of a layout for good. They are deleted by the event loop: one of them may be at work."""
    for widget in widgets:
        layout.removeWidget(widget)
        widget.hide()
        widget.deleteLater()


def clear(layout: QLayout) -> None:
    """Take all widgets out of a layout for good."""
    items = (layout.itemAt(i) for i in range(layout.count()))
    drop(layout, *[widget for item in items if item is not None and (widget := item.widget()) is not None])


def _add(box: QBoxLayout, thing: Thing, stretch: int = 0, alignment: Qt.AlignmentFlag | None = None) -> None:
    if isinstance(thing, QLayout):
        box.addLayout(thing, stretch)
    elif alignment is None:
        box.addWidget(thing, stretch)
    else:
        box.addWidget(thing, stretch, alignment)
