"""The handle on time: a slider over all remembered operations, step and play."""

from typing import Final

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QSlider, QWidget

from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.controls import IconButton
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.ui.widgets.timers import every

_TICK_MS: Final = 100
_SPEEDS: Final = (1, 10, 100)  # operations a tick


class Scrubber(QWidget):
    """Shows and sets a number between `first` and `last`; says which one a person wants."""

    moved = Signal(int)  # to this operation
    stepped = Signal(int)  # by this number of operations

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName(tr("Operation that is shown"))
        self.slider.setEnabled(False)
        self.slider.valueChanged.connect(self.moved)
        self._first, self._back, self._play, self._forward, self._last = buttons = (
            IconButton(
                theme, "step-back", tr("To the first operation"), clicked=lambda: self._go(self.slider.minimum())
            ),
            IconButton(theme, "chevron-left", tr("One operation back"), clicked=lambda: self._step(-1)),
            IconButton(theme, "play", tr("Play the operations from here on"), clicked=self.toggle_play),
            IconButton(theme, "chevron-right", tr("One operation forward"), clicked=lambda: self._step(1)),
            IconButton(
                theme, "step-forward", tr("To the last operation"), clicked=lambda: self._go(self.slider.maximum())
            ),
        )
        self._speed = Choice(scale="small", name=tr("Operations a second while playing"))
        self._speed.setToolTip(tr("Operations a second while playing"))
        for speed in _SPEEDS:
            self._speed.addItem(f"{speed * 1000 // _TICK_MS:,} /s", speed)
        self._timer = every(self, _TICK_MS, lambda: self.stepped.emit(int(self._speed.currentData())))
        boxes.row(*buttons, (self.slider, 1), self._speed, on=self, margins=0, spacing=4)

    @property
    def is_playing(self) -> bool:
        return self._timer.isActive()

    def show_range(self, first: int, last: int, at: int) -> None:
        """Set the range and the position; emits nothing."""
        with QSignalBlocker(self.slider):
            self.slider.setEnabled(last > first)
            self.slider.setRange(first, last)
            self.slider.setPageStep(max(1, (last - first) // 20))
            self.slider.setValue(at)
        for button in (self._first, self._back):
            button.setEnabled(at > first)
        for button in (self._forward, self._last):
            button.setEnabled(at < last)
        self._play.setEnabled(last > first)
        if at >= last:
            self.stop()

    def stop(self) -> None:
        if self._timer.isActive():
            self._timer.stop()
            self._show_play()

    def toggle_play(self) -> None:
        """Play from here; from the beginning where this is the end."""
        if self._timer.isActive():
            self.stop()
            return
        if self.slider.value() >= self.slider.maximum():
            self.moved.emit(self.slider.minimum())
        self._timer.start()
        self._show_play()

    def _go(self, number: int) -> None:
        self.stop()
        self.moved.emit(number)

    def _step(self, by: int) -> None:
        self.stop()
        self.stepped.emit(by)

    def _show_play(self) -> None:
        playing = self._timer.isActive()
        self._play.set_icon_name("pause" if playing else "play")
        name = tr("Pause") if playing else tr("Play the operations from here on")
        self._play.setAccessibleName(name)
        self._play.setToolTip(name)
