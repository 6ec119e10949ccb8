"""Downloads behind their part of the page of models. The hub is asked beside the window's thread, and only
once the user has opened that part.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal

from kvdesk.app.background import Background, Task
from kvdesk.errors import UserError
from kvdesk.library.download_queue import Download, DownloadQueue, State
from kvdesk.library.hub import Hub, is_repo, keep_token, read_token
from kvdesk.library.recommended import recommended
from kvdesk.session import SettingsStore
from kvdesk.session.features import HubCommands
from kvdesk.translation import tr
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.viewmodel.downloads import Offer, offers_of, recommended_offers

if TYPE_CHECKING:
    from kvdesk.ui.models.get_models import GetModels
    from kvdesk.ui.models.page import ModelsPage

AT_ONCE: Final = 8
"""Questions to the hub: one that it never answers keeps nothing from the next."""


class ModelDownloads(QObject, HubCommands):
    """settings: where the address of the hub is."""

    finished = Signal()
    """A model is downloaded."""

    def __init__(self, window: MainWindow, settings: SettingsStore) -> None:
        super().__init__(window)
        self._window = window
        self._settings = settings
        self._part: GetModels | None = None
        self._filled = False  # with what was known when it was first shown
        self._queue: DownloadQueue | None = None
        self._downloads: tuple[Download, ...] = ()
        self._background = Background("hub", self, AT_ONCE)
        window.commands.hub = self
        self._questions: list[Task] = []  # for the list that is shown: another search drops their answers

    def show_in(self, page: ModelsPage) -> None:
        """The page was made."""
        self._part = page.get_models

    def close(self) -> None:
        """Downloads are paused."""
        self._background.close(wait_s=0.0)
        if self._queue is not None:
            self._queue.close()

    # --- intents ------------------------------------------------------------------------------------------------------

    def fill(self) -> None:
        """The first time; nothing is asked of the network yet."""
        if self._filled or self._part is None or self._background.is_closing:
            return
        self._filled = True
        self._part.show_recommended(recommended_offers(recommended()))
        self._part.show_access(self._settings.current.hub_endpoint, has_token=bool(read_token()))
        if self._queue is None:
            self._made_queue().restore()
        else:
            self._part.downloads.show_downloads(self._downloads)

    def search(self, words: str) -> None:
        for question in self._questions:
            question.cancel()
        self._questions.clear()
        part = self._shown_part()
        repo = words.removeprefix("https://huggingface.co/").strip("/")
        if is_repo(repo):
            self.list_files(repo)
        elif words:
            self._questions.append(self._ask(lambda hub: partial(part.show_repos, hub.search(words))))

    def list_files(self, repo: str) -> None:
        part = self._shown_part()
        self._questions.append(self._ask(lambda hub: partial(part.show_files, repo, offers_of(hub.models(repo)))))

    def download(self, offer: Offer) -> None:
        """Show the page of models, and download this one there."""
        self._window.rooms.show_models(get=True)
        self._shown_part().choose(offer)
        self.get(offer)

    def get(self, offer: Offer) -> None:
        part, queue = self._shown_part(), self._made_queue()
        if offer.model is not None:
            queue.add(offer.model)
            return

        def found(hub: Hub) -> Callable[[], None]:
            models = hub.models(offer.repo)
            model = next((model for model in models if model.files[0].name == offer.file), None)
            if model is None:
                raise UserError(tr("{repo} no longer has {file}.").format(repo=offer.repo, file=offer.file))

            def add() -> None:
                part.show_found()
                queue.add(model)

            return add

        self._ask(found)

    def pause(self, key: str) -> None:
        self._made_queue().pause(key)

    def resume(self, key: str) -> None:
        self._made_queue().resume(key)

    def drop(self, key: str) -> None:
        self._made_queue().cancel(key)

    def open(self, key: str) -> None:
        path = next((one.path for one in self._downloads if one.key == key), None)
        if path is not None:
            self._window.commands.open_model(path)

    def set_access(self, endpoint: str, token: str | None) -> None:
        part = self._shown_part()
        try:
            Hub(endpoint)
            if token is not None:
                keep_token(token)
        except UserError as error:
            part.show_problem(str(error))
            return
        part.banner.hide()
        self._settings.change(hub_endpoint=endpoint)
        part.show_access(endpoint, has_token=bool(read_token()))

    # --- threads ------------------------------------------------------------------------------------------------------

    def _ask(self, ask: Callable[[Hub], Callable[[], None]]) -> Task:
        """On a thread that nobody waits for; what `ask` returns shows the answer, on this one."""
        self._shown_part().show_waiting()
        endpoint = self._settings.current.hub_endpoint
        return self._background.run(
            lambda: ask(Hub(endpoint, read_token())),
            lambda answer: answer(),
            lambda error: self._shown_part().show_problem(str(error), partial(self._ask, ask)),
        )

    def _made_queue(self) -> DownloadQueue:
        if self._queue is None:
            self._queue = DownloadQueue(lambda: Hub(self._settings.current.hub_endpoint, read_token()), self._tell)
        return self._queue

    def _tell(self, downloads: tuple[Download, ...]) -> None:
        """From any thread."""
        self._background.tell(self._on_told, downloads)

    def _on_told(self, downloads: tuple[Download, ...]) -> None:
        before = {one.key for one in self._downloads if one.state is State.DONE}
        self._downloads = downloads
        if self._part is not None:
            self._part.downloads.show_downloads(downloads)
        if any(one.state is State.DONE and one.key not in before for one in downloads):
            self.finished.emit()

    def _shown_part(self) -> GetModels:
        assert self._part is not None
        return self._part
