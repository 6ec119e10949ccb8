"""Photographs every page, dialog and list of the window, with the real model: to be looked at in each language."""

from collections.abc import Iterator

from PySide6.QtWidgets import QWidget

from kvdesk.translation import tr
from tests.tour.serving_steps import Condition, serving
from tests.tour.tour import Tour


class Pages(Tour):
    """As the tour, without its words and without operations."""

    def _steps(self) -> Iterator[Condition]:
        self._say("Loading the model")
        yield lambda: "model" in self._report and bool(self._ready) and self._view is not None
        yield from self._turn(self._selected(), tr("Hello"))
        window = self._window
        window.chat.composer.set_text(tr("Hello"))
        yield from self._picture("chat", 1.0)
        inspector = window.inspector
        labels = [label for n, label in enumerate(inspector.labels) if inspector._has(n)]
        for label in labels:
            window.shown_settings.show_page(label)
            yield from self._picture(label.lower(), 1.2)
        window.shown_settings.show_page(labels[0])
        inspector.cache.instruments.operations.set_open(True)
        yield from self._picture("operations")
        inspector.cache.instruments.operations.set_open(False)
        yield from self._dialogs()
        yield from serving(window, self._picture_of)
        yield from self._cards()
        yield from self._rooms()

    def _dialogs(self) -> Iterator[Condition]:
        window = self._window
        settings = window.rooms.show_settings()
        for section in range(settings.sections.count()):
            settings.sections.setCurrentRow(section)
            yield from self._picture(f"settings-{section + 1}" if section else "settings")
        settings.show_context()
        yield from self._picture("settings-rebuild")
        window.rooms.show_chats()
        window.chat_parameters.open()
        parameters = window.chat_parameters.panel
        for page, name in enumerate(("prompt", "sampling", "template")):
            parameters.tab(page).click()
            yield lambda: bool(parameters._cost.text())
            yield from self._picture(f"parameters-{name}")
        window.chat_parameters.close()
        yield lambda: window.store.view is not None
        window.action_set.run("cache.compact")
        yield from self._picture("compaction", 1.0)
        window.inspector.cache.instruments.compaction.refuse()
        window.commands.show_about()
        yield from self._closed("about", window.help.about)
        window.help.open_explained()
        yield from self._closed("explained", window.help.explained)
        window.help.open_report()
        yield from self._closed("report", window.help.report)

    def _closed(self, name: str, dialog: QWidget | None) -> Iterator[Condition]:
        """Photograph a dialog, and close it."""
        yield from self._picture(name, 1.0, of=dialog)
        dialog.close()

    def _cards(self) -> Iterator[Condition]:
        helps = self._window.help
        helps.open_palette()
        yield from self._picture("palette")
        helps.palette.close_palette()
        helps.open_shortcuts()
        yield from self._picture("shortcuts")
        helps.palette.close_palette()
        helps.start_tour()
        yield from self._picture("tour")
        helps.leave_tour()

    def _rooms(self) -> Iterator[Condition]:
        rooms = self._window.rooms
        rooms.show_models()
        models = rooms.models
        yield lambda: bool(models.rows)
        yield from self._picture("models")
        rooms.show_models(get=True)
        yield from self._picture("downloads")
        rooms.show_room("lab")
        lab = rooms.get("lab")
        yield lambda: lab.question is not None
        yield from self._picture("lab", 1.0)
        rooms.show_chats()

    def _say(self, what: str) -> None:
        self._report["steps"].append(what)
