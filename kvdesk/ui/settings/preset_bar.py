"""Presets in one line: choose one, keep what is shown as one, rename, delete, import and export."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QInputDialog, QMenu, QWidget

from kvdesk.errors import UserError
from kvdesk.paths import open_regular
from kvdesk.settings import Preset, Sampling
from kvdesk.settings import preset as presets
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.key_tips import show_tips_of
from kvdesk.ui.widgets.allow import allow
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.choose_file import ask_for_file, ask_where_to_save
from kvdesk.ui.widgets.controls import IconButton, below, label, push_button, show_text
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.whole_file import write_whole


class PresetBar(QWidget):
    """`values`: the system prompt and the sampling that are shown, to be kept as a preset.

    chosen(Preset)      show its values
    changed(presets)    the person's own presets are these now
    """

    chosen = Signal(Preset)
    changed = Signal(tuple)

    def __init__(self, theme: Theme, values: Callable[[], tuple[str, Sampling]]) -> None:
        super().__init__()
        self._values = values
        self._own: tuple[Preset, ...] = ()
        self.choice = Choice(name=tr("Preset"))
        self.choice.setToolTip(tr("A preset sets all samplers at once, and the system prompt if it has one"))
        self.choice.activated.connect(self._on_activated)
        self.save_button = push_button(tr("Save as preset…"), clicked=self._on_save_clicked)
        self.menu = menu = QMenu(self)
        self.more_button = button = IconButton(theme, "more", tr("More about presets"))
        button.clicked.connect(lambda: menu.popup(below(button)))
        self._rename = self.menu.addAction(tr("Rename…"), self._on_rename)
        self._delete = self.menu.addAction(tr("Delete"), self._on_delete)
        show_tips_of(menu)
        self.menu.addSeparator()
        self._import = self.menu.addAction(tr("Import…"), self._on_import)
        self._export = self.menu.addAction(tr("Export…"), self._on_export)
        self.sentence = label("", tone="secondary", scale="small", wrap=True)
        self.sentence.hide()
        line = boxes.row((self.choice, 1), self.save_button, self.more_button, spacing=8)
        boxes.column(line, self.sentence, on=self, margins=(0, 0, 0, 4), spacing=4)

    @property
    def current(self) -> Preset | None:
        """The preset whose values are shown; None if they are those of no preset."""
        found = self.choice.currentData()
        return found if isinstance(found, Preset) else None

    def show_values(self, own: tuple[Preset, ...], sampling: Sampling, system_prompt: str) -> None:
        """Offer the built-in presets and the person's own, and name the one that has these values."""
        self._own = own
        offered = (*presets.built_in(), *own)
        fitting = {p.name: p for p in offered if p.sampling == sampling and p.system_prompt in (None, system_prompt)}
        before = "" if self.current is None else self.current.name
        shown = fitting.get(before) or next(iter(fitting.values()), None)
        lines = [*([(tr("Own values"), None)] if shown is None else []), *((preset.name, preset) for preset in offered)]
        with QSignalBlocker(self.choice):
            if lines != [(self.choice.itemText(i), self.choice.itemData(i)) for i in range(self.choice.count())]:
                self.choice.clear()  # not while somebody chooses
                for name, preset in lines:
                    self.choice.addItem(name, preset)
            self.choice.setCurrentIndex(0 if shown is None else self.choice.findText(shown.name))
        is_own = shown is not None and shown.name in {p.name for p in own}
        for action in (self._rename, self._delete):
            allow(action, "" if is_own else tr("Only presets that you saved can be renamed or deleted."))

    def _on_activated(self, index: int) -> None:
        preset = self.choice.itemData(index)
        if isinstance(preset, Preset):
            self._say("")
            self.chosen.emit(preset)

    def _on_save_clicked(self) -> None:
        current = self.current
        suggested = current.name if current is not None and current in self._own else ""
        name, given = QInputDialog.getText(self, tr("Save as preset"), tr("Name of the preset"), text=suggested)
        if given:
            self.save(name)

    def _on_rename(self) -> None:
        if (current := self.current) is not None:
            name, given = QInputDialog.getText(self, tr("Rename preset"), tr("Name of the preset"), text=current.name)
            if given:
                self._change(lambda: presets.renamed(self._own, current.name, name))

    def _on_delete(self) -> None:
        if (current := self.current) is not None:
            self._change(lambda: presets.without_preset(self._own, current.name))
            self._say(tr("“{name}” was deleted; its values are still shown.").format(name=current.name))

    def _on_import(self) -> None:
        if file := ask_for_file(self, tr("Import a preset"), tr("Presets (*.json);;All files (*)")):
            self.import_file(file)

    def _on_export(self) -> None:
        preset = self._shown_preset(self.current.name if self.current is not None else tr("My preset"))
        proposed = "".join(char if char.isalnum() or char in " -_" else "_" for char in preset.name)
        file = ask_where_to_save(self, tr("Export the preset"), f"{proposed}.json", tr("Presets (*.json)"))
        if file is not None:
            self.export_file(file, preset)

    def save(self, name: str) -> None:
        """Keep what is shown as a preset of this name; one that has it is replaced."""
        self._change(lambda: presets.with_preset(self._own, self._shown_preset(presets.checked_name(name))))

    def import_file(self, file: Path) -> None:
        """Keep the preset of a file among the person's own, under a name that is free, and show its values."""
        try:
            with open_regular(file) as opened:
                preset = presets.imported(opened.read(presets.MOST_BYTES + 1))
            preset = preset.model_copy(update={"name": presets.free_name(self._own, preset.name)})
            own = presets.with_preset(self._own, preset)
        except OSError as error:
            self._say(tr("The file cannot be read ({why}).").format(why=error.strerror))
            return
        except UserError as error:
            self._say(str(error))
            return
        self.changed.emit(own)
        self.chosen.emit(preset)
        self._say(tr("“{name}” was imported.").format(name=preset.name))

    def export_file(self, file: Path, preset: Preset) -> None:
        """Write a preset to a file."""
        try:
            write_whole(file, presets.exported(preset).encode())
        except OSError as error:
            self._say(tr("The preset cannot be saved ({why}).").format(why=error.strerror))
            return
        self._say(tr("The preset was saved to {file}.").format(file=file.name))

    # --- private ------------------------------------------------------------------------------------------------------

    def _shown_preset(self, name: str) -> Preset:
        system_prompt, sampling = self._values()
        return Preset(name=name, system_prompt=system_prompt or None, sampling=sampling)

    def _change(self, made: Callable[[], tuple[Preset, ...]]) -> None:
        try:
            own = made()
        except UserError as error:
            self._say(str(error))
            return
        self._say("")
        self.changed.emit(own)

    def _say(self, sentence: str) -> None:
        show_text(self.sentence, sentence)
