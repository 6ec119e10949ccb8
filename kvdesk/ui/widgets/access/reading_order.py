"""The order in which Tab goes through a window: as one reads it, also where parts were made later than others."""

from collections.abc import Iterator
from functools import cmp_to_key

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QScrollArea, QWidget

from kvdesk.ui.widgets.access.key_tips import show_tip


def in_reading_order(root: QWidget) -> Iterator[QWidget]:
    """Everything inside of `root` that Tab can reach: of two neighbours the upper one first, else the left one."""
    children = [child for child in root.children() if isinstance(child, QWidget)]
    seen = [child for child in children if child.isVisibleTo(root) and not child.isWindow()]
    for child in sorted(seen, key=cmp_to_key(_before)):
        if child.focusPolicy() & Qt.FocusPolicy.TabFocus and child.isEnabled() and child.focusProxy() is None:
            yield child
        yield from in_reading_order(child)


def focus_next(window: QWidget, *, forward: bool) -> bool:
    """Give the focus to what comes next, the first after the last. False if nothing can have it."""
    order = list(in_reading_order(window))
    if not order:
        return False
    step, now = 1 if forward else -1, window.focusWidget()
    at = order.index(now) + step if now in order else min(step, 0)
    reason = Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason
    target = order[at % len(order)]
    target.setFocus(reason)
    around = target.parentWidget()
    while around is not None:
        if isinstance(around, QScrollArea):
            around.ensureWidgetVisible(target)
        around = around.parentWidget()
    show_tip(target)
    return True


def _before(one: QWidget, other: QWidget) -> int:
    """Negative when `one` is read first."""
    first, second = one.geometry(), other.geometry()
    if first.bottom() < second.top() or second.bottom() < first.top():
        return first.top() - second.top()
    return first.left() - second.left()
