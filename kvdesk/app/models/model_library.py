"""The models behind their page: looks through folders, reads headers, measures memory, and remembers what was used.

Nothing here blocks the window's thread: files are read beside it.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QFile, QObject, Signal

from kvdesk.app.background import Background
from kvdesk.errors import KvdeskError
from kvdesk.library.bandwidth import measure
from kvdesk.library.catalogue import ModelFacts, facts_of, fit_of
from kvdesk.library.estimate import available_bytes
from kvdesk.library.find import FoundModel, all_folders, files_of, find_models, short_name, stored_in
from kvdesk.paths import embedded_model
from kvdesk.protocol.cache import ContextReady
from kvdesk.protocol.chat import ModelLoaded, TurnEnded
from kvdesk.protocol.messages import Event
from kvdesk.protocol.model import LocalFile
from kvdesk.session import SettingsStore
from kvdesk.session.features import ModelCommands
from kvdesk.settings import ContextSettings, Settings, UsedModel
from kvdesk.translation import tr
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.values import replace
from kvdesk.viewmodel.models import Machine, ModelRow, in_order, measured_layer_s, remembered, row_of

if TYPE_CHECKING:
    from kvdesk.ui.models.page import ModelsPage

ENOUGH_TOKENS: Final = 32
"""Of an answer whose speed is remembered."""
SHARE: Final = 0.9
"""Of the memory's bandwidth that decoding reaches: measured with models of 135 M and 1 B."""
Found = tuple[tuple[ModelRow, ...], Machine]


class ModelLibrary(QObject, ModelCommands):
    """settings: where models are remembered; embedded: the model that comes with kvdesk."""

    machine_known = Signal(object, object)  # Machine; paths of the models that are here, by the names of their files

    def __init__(self, window: MainWindow, settings: SettingsStore, embedded: Path | None) -> None:
        super().__init__(window)
        self._window, self._settings, self._embedded = window, settings, embedded
        self._page: ModelsPage | None = None
        self._open: Path | None = None
        self._background = Background("models", self)
        self._bandwidth = 0.0
        self._added: Path | None = None
        """A folder that was chosen and is being looked through."""
        self._facts: dict[tuple[Path, int, int], ModelFacts] = {}  # by file, its size and time
        window.commands.models = self
        self._window.rooms.when_made("models", self._on_page_made)
        self._show_better()

    def apply(self, event: Event) -> None:
        """What was opened, and how fast it wrote."""
        match event:
            case ModelLoaded():
                source = event.model.source
                self._open = source.path if isinstance(source, LocalFile) else None
                self._show_better()
                self._change(used_ms=int(time.time() * 1000), context=self._settings.current.context)
                self.refresh()
            case ContextReady():
                self._change(context=self._settings.current.context)
            case TurnEnded() if event.stats.generated_tokens >= ENOUGH_TOKENS and event.stats.decode_tok_s > 0:
                known = self.used(self._open) if self._open is not None else None
                speed = round(event.stats.decode_tok_s, 2)
                if known is not None and abs(speed - known.tok_s) > 0.05 * known.tok_s:
                    self._change(tok_s=speed)

    def _show_better(self) -> None:
        self._window.store.show_embedded(is_open=self._open is not None and self._open == self._embedded)

    def used(self, path: Path) -> UsedModel | None:
        """What is remembered of a model."""
        return next((model for model in self._settings.current.models if model.path == str(path)), None)

    def refresh(self) -> None:
        """Look again, if the page was ever shown."""
        if self._page is not None:
            self._page.show_searching()
            self._background.run(partial(self._rows, self._settings.current), self._show, self._page.show_problem)

    def ask_machine(self) -> None:
        """Answered by `machine_known`; the page of models need not exist."""

        def tell(known: tuple[list[ModelFacts], Machine]) -> None:
            facts, machine = known
            self.machine_known.emit(machine, {model.found.path.name: model.found.path for model in facts})

        self._background.run(partial(self._look, self._settings.current), tell)

    def close(self) -> None:
        """No thread is left."""
        self._background.close()

    # --- on the other thread ------------------------------------------------------------------------------------------

    def _look(self, settings: Settings) -> tuple[list[ModelFacts], Machine]:
        used = _used(settings)
        facts = [self._read(model) for model in self._all(used, settings.model_folders)]
        return facts, self._measured(facts, used, settings.context)

    def _rows(self, settings: Settings) -> Found:
        (facts, machine), used, rows = self._look(settings), _used(settings), []
        for model in facts:
            fit = None
            if not model.problem:
                try:
                    fit = fit_of(model.found, settings.context, machine.available)
                except KvdeskError as error:
                    logging.getLogger(__name__).warning("no estimate for %s: %s", model.found.path, error)
            rows.append(row_of(model, fit, used.get(str(model.found.path)), machine))
        return in_order(rows, used.values()), machine

    def _measured(self, facts: list[ModelFacts], used: dict[str, UsedModel], context: ContextSettings) -> Machine:
        self._bandwidth = max(self._bandwidth, measure(context.n_threads))  # other programs may have been busy
        bytes_s = SHARE * self._bandwidth
        layer_s = measured_layer_s(facts, used, bytes_s)
        machine = Machine(bytes_s, layer_s is not None, available_bytes())
        return machine if layer_s is None else machine._replace(layer_s=layer_s)

    def _all(self, used: dict[str, UsedModel], folders: tuple[str, ...]) -> list[FoundModel]:
        """The embedded one, those of the folders, and those that were opened from anywhere else."""
        found = list(find_models(all_folders(folders)))
        known = {model.path for model in found}
        others = [(self._embedded, tr("comes with kvdesk"))] if self._embedded is not None else []
        others += [(Path(path), tr("opened here")) for path in used]
        for path, where in others:
            try:
                if path not in known and path.is_file():
                    size = sum(file.stat().st_size for file in files_of(path))
                    found.append(FoundModel(path.stem, path, size, where))
                    known.add(path)
            except OSError:
                continue
        return found

    def _read(self, model: FoundModel) -> ModelFacts:
        """The header, read again when the file has changed."""
        try:
            status = model.path.stat()
        except OSError:
            return facts_of(model)
        key = model.path, status.st_size, status.st_mtime_ns
        if key not in self._facts:
            self._facts[key] = facts_of(model)
        return replace(self._facts[key], found=model)  # another folder may have it now

    # --- intents of the page ------------------------------------------------------------------------------------------

    def _on_page_made(self, page: ModelsPage) -> None:
        self._page = page
        self.refresh()

    def add_folder(self, folder: Path) -> None:
        known = self._settings.current.model_folders
        self._added = folder = folder.absolute()
        self._settings.change(model_folders=tuple(dict.fromkeys((*known, str(folder)))))
        self.refresh()

    def drop_folder(self, folder: Path) -> None:
        known = self._settings.current.model_folders
        self._settings.change(model_folders=tuple(path for path in known if path != str(folder)))
        self.refresh()

    def mark(self, path: Path, *, favourite: bool) -> None:
        known = self.used(path) or UsedModel(path=str(path))
        self._keep(known.model_copy(update={"favourite": favourite}))
        self.refresh()

    def delete(self, path: Path) -> None:
        """Into the trash if there is one."""
        assert self._page is not None
        if not path.exists():
            self.refresh()
            return
        if path == self._open:
            self._page.banner.show_error(tr("This model is open: open another one first."))
            return
        if any(own is not None and own.exists() and own.samefile(path) for own in (self._embedded, embedded_model())):
            self._page.banner.show_error(tr("This model belongs to kvdesk itself and stays."))
            return
        for file in stored_in(path):
            trashed = QFile(str(file))
            if not trashed.moveToTrash() and not trashed.remove():
                said = tr("{file} cannot be deleted: {why}.").format(file=file.name, why=trashed.errorString())
                self._page.banner.show_error(said)
                break
        rest = tuple(model for model in self._settings.current.models if model.path != str(path))
        if not path.exists():
            self._settings.change(models=rest)
        self.refresh()

    def _show(self, found: Found) -> None:
        if self._page is None:
            return
        self._page.show_rows(*found)
        added, self._added = self._added, None
        if added is not None and not any(row.path.is_relative_to(added) for row in self._page.rows):
            said = tr("{folder} contains no GGUF file that is not listed already.")
            self._page.banner.show_error(said.format(folder=short_name(added)))

    # --- what is remembered -------------------------------------------------------------------------------------------

    def _change(self, **changes: object) -> None:
        """Of the open model."""
        if self._open is None:
            return
        known = self.used(self._open) or UsedModel(path=str(self._open))
        changed = known.model_copy(update=changes)
        if changed != known:
            self._keep(changed)

    def _keep(self, model: UsedModel) -> None:
        self._settings.change(models=remembered(self._settings.current.models, model))


def _used(settings: Settings) -> dict[str, UsedModel]:
    return {model.path: model for model in settings.models}
