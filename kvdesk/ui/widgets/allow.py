"""What can be done now, and why not if it cannot."""

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget


def allow(thing: QAction | QWidget, why: str, tip: str = "") -> None:
    """`why`: it cannot be done or chosen now; "" if it can, and `tip` says more about it."""
    thing.setEnabled(not why)
    thing.setToolTip(why or tip)
