"""Telling a screen reader what has happened somewhere else than where the focus is."""

from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QWidget


def announce(widget: QWidget, text: str, *, urgent: bool = False) -> None:
    """Have a screen reader say `text`, after what it is saying, or at once. Without a screen reader nothing happens."""
    if not text or not _is_heard():
        return
    event = QAccessibleAnnouncementEvent(widget, text)
    politeness = QAccessible.AnnouncementPoliteness
    event.setPoliteness(politeness.Assertive if urgent else politeness.Polite)
    _send(event)


def _is_heard() -> bool:
    """Whether a screen reader has asked."""
    return QAccessible.isActive()


def _send(event: QAccessibleAnnouncementEvent) -> None:
    QAccessible.updateAccessibility(event)
