"""The downloads: a line for each, with its progress and what can be done with it."""

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from kvdesk.library.download_queue import Download, State
from kvdesk.session import Commands
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import ElidedLabel, ThinProgress, on_ground, push_button, set_tone
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.downloads import progress_text

_MOST_PX: Final = 160
_BUTTON_PX: Final = 84


class DownloadRow(QWidget):
    """One of them."""

    def __init__(self, theme: Theme, download: Download, commands: Commands) -> None:
        super().__init__()
        self._commands = commands
        self._key = download.key
        self._state: State | None = None
        self.name = ElidedLabel(download.title)
        self.text = ElidedLabel(scale="small", tone="secondary")
        self.progress = ThinProgress(tr("Progress of {name}").format(name=download.title))
        self.main, self.cancel = (
            push_button("", clicked=self._on_main),
            push_button("", clicked=lambda: commands.hub.drop(self._key)),
        )
        self.main.setMinimumWidth(theme.px(_BUTTON_PX))
        self.cancel.setMinimumWidth(theme.px(_BUTTON_PX))
        grid = boxes.grid(8, 2, 2, 3, on=self, margins=(0, 4, 8, 4))
        grid.addWidget(self.name, 0, 0)
        grid.addWidget(self.text, 0, 1)
        grid.addWidget(self.progress, 1, 0, 1, 2)
        grid.addWidget(self.main, 0, 2, 2, 1)
        grid.addWidget(self.cancel, 0, 3, 2, 1)
        self.show_download(download)

    def show_download(self, download: Download) -> None:
        text = progress_text(download)
        self.text.setText(text)
        share = download.done_bytes / download.total_bytes if download.total_bytes else 0.0
        self.progress.set_share(None if download.state is State.DONE else share)
        if download.state is self._state:
            return
        self._state = download.state
        set_tone(self.text, "danger" if download.state is State.FAILED else "secondary")
        match download.state:
            case State.WAITING | State.RUNNING:
                captions = tr("Pause"), tr("Cancel")
            case State.PAUSED | State.FAILED:
                captions = tr("Resume"), tr("Cancel")
            case State.DONE:
                captions = tr("Open"), tr("Remove from the list")
        for button, caption in zip((self.main, self.cancel), captions, strict=True):
            button.setText(caption)
            button.setAccessibleName(f"{caption}: {download.title}")

    def _on_main(self) -> None:
        match self._state:
            case State.WAITING | State.RUNNING:
                self._commands.hub.pause(self._key)
            case State.DONE:
                self._commands.hub.open(self._key)
            case _:
                self._commands.hub.resume(self._key)


class DownloadRows(QScrollArea):
    """All of them; hidden while there is none."""

    def __init__(self, theme: Theme, commands: Commands) -> None:
        super().__init__()
        self._commands = commands
        self._theme = theme
        self.rows: dict[str, DownloadRow] = {}
        self.setAccessibleName(tr("Downloads"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        inside = QWidget()
        on_ground(inside, "panel")
        self._column = boxes.column(on=inside, margins=0, spacing=0)
        self.setWidget(inside)
        self.hide()

    def show_downloads(self, downloads: tuple[Download, ...]) -> None:
        """These and no others, in this order."""
        known = {download.key: download for download in downloads}
        boxes.show_rows(
            self._column, self.rows, list(known), lambda key: DownloadRow(self._theme, known[key], self._commands)
        )
        for key, download in known.items():
            self.rows[key].show_download(download)
        height = sum(row.sizeHint().height() for row in self.rows.values())
        self.setFixedHeight(min(height, self._theme.px(_MOST_PX)))
        self.setVisible(bool(self.rows))
