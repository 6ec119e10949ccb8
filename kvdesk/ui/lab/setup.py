"""What is set before an experiment runs: parameters, model, and what it will take; Run and Cancel."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import QButtonGroup, QSizePolicy, QWidget

from kvdesk.paths import model_name
from kvdesk.protocol.experiment import Parameter, Request
from kvdesk.session import Commands
from kvdesk.translation import tr
from kvdesk.ui.lab.source_choice import OTHER, SourceChoice
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.choose_file import ask_for_file
from kvdesk.ui.widgets.controls import label, plain_tip, push_button, set_tone, tab_button
from kvdesk.ui.widgets.number_fields import RealField, WholeField
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.ui.widgets.timers import once
from kvdesk.viewmodel.lab import ModelChoice, Needs, Question

_HINT_GAP_PX: Final = 6
_FIELD_PX: Final = 96
_ASK_MS: Final = 150  # after the last change


class Setup(QWidget):
    """Asks what an experiment would take, and for its run."""

    def __init__(self, theme: Theme, commands: Commands) -> None:
        super().__init__()
        self._theme, self._commands = theme, commands
        self._question: Question | None = None
        self._fields: dict[str, WholeField | RealField] = {}
        self._models: list[ModelChoice] = []
        self._file: ModelChoice | None = None  # a file that was chosen here
        self._chosen: Path | None = None  # the model that a person wants; None: the first
        self._typed: dict[tuple[str, bool], dict[str, float]] = {}  # by question, and whether its form is the short one
        self._busy = ""  # the title of the experiment that runs
        self._can: bool | None = None  # whether what the parameters need is there; None: not known yet
        self._wants = False  # Run was clicked before that was known
        self.run_button = push_button(tr("Run"), primary=True, clicked=self._on_run)
        self.cancel_button = push_button(
            tr("Cancel"),
            tip=tr("End the experiment's process at once; its samples are lost"),
            clicked=lambda _: commands.lab.cancel(),
        )
        self.cancel_button.hide()
        self._forms = QButtonGroup(self)
        short = tab_button(tr("Short"), tip=tr("The short form: within three minutes"), checked=True)
        long = tab_button(tr("Long"), tip=tr("The long form: more rounds and larger contexts"))
        self._forms.addButton(short, 0)
        self._forms.addButton(long, 1)
        forms = boxes.row(short, long, boxes.Stretch(1), self.cancel_button, self.run_button, spacing=4)
        self._forms.idClicked.connect(self._on_form)
        self._grid = boxes.grid(8, 2, 1)
        self._model = Choice(name=tr("Model"))
        self._model.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._model.activated.connect(self._on_model)
        texts, every = tr("Text"), tr("All files (*)")
        files = f"{texts} (*.txt *.md);;{every}"
        own = tr("A text that comes with kvdesk")
        self._text = SourceChoice(tr("Text"), own, tr("Choose a text"), files)
        self._text_title = label(tr("Text"), weight="strong")
        files = ";;".join((tr("JSON lines (*.jsonl)"), every))
        own = tr("Its own, made by a seed")
        self._journal = SourceChoice(tr("History"), own, tr("Choose a journal"), files)
        self._journal_title = label(tr("History"), weight="strong")
        self._text.changed.connect(self._ask)
        self._journal.changed.connect(self._ask)
        self._needs = label("", tone="secondary", scale="small", wrap=True)
        self._needs.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._asking = once(self, _ASK_MS, self._ask)
        theme.changed.connect(self._fit)
        boxes.column(
            label(tr("Parameters"), weight="strong"),
            forms,
            self._grid,
            label(tr("Model"), weight="strong"),
            self._model,
            self._text_title,
            self._text,
            self._journal_title,
            self._journal,
            self._needs,
            on=self,
            margins=0,
            spacing=8,
        )

    def _fit(self) -> None:
        """Fields as wide as the size of the text needs."""
        for field in self._fields.values():
            field.setFixedWidth(self._theme.px(_FIELD_PX))

    def show_question(self, question: Question) -> None:
        """Its parameters, with the values of the chosen form."""
        self._question = question
        boxes.clear(self._grid)
        self._fields = {}
        for n, parameter in enumerate(question.parameters):
            field = self._fields[parameter.key] = _field(parameter)
            name = label(tr(parameter.title))
            hint = label(
                f"{tr(parameter.description)} · {_range(parameter)}", tone="secondary", scale="small", wrap=True
            )
            hint.setContentsMargins(0, 0, 0, _HINT_GAP_PX)
            name.setBuddy(field)
            self._grid.addWidget(name, 2 * n, 0)
            self._grid.addWidget(field, 2 * n, 1)
            self._grid.addWidget(hint, 2 * n + 1, 0, 1, 2)
            field.valueChanged.connect(self._on_typed)
            field.problem_changed.connect(self._ask_soon)
        self._fit()
        self._text_title.setVisible(question.takes_text)
        self._text.setVisible(question.takes_text)
        self._journal_title.setVisible(question.takes_journal)
        self._journal.setVisible(question.takes_journal)
        self._fill_fields()
        self._ask()

    def show_models(self, models: Sequence[ModelChoice]) -> None:
        """Models to choose from; the first is chosen unless a person has chosen another one."""
        self._models = list(models)
        self._fill_models()
        self._ask()

    def show_needs(self, request: Request, needs: Needs) -> None:
        """What it would take; ignored where something else is set by now."""
        if request == self.request:
            self._can = not needs.why_not
            wants, self._wants = self._wants, False
            self._needs.setText(str(needs))
            set_tone(self._needs, "danger" if needs.why_not else "secondary")
            self._show_state()
            if wants and self._can and not self._busy:
                self._on_run()

    def show_running(self, title: str, *, here: bool) -> None:
        """An experiment runs ("": none does); `here`: it is the one that is shown."""
        self._busy = title
        self.cancel_button.setVisible(bool(title) and here)
        self.run_button.setVisible(not (bool(title) and here))
        self._show_state()

    @property
    def request(self) -> Request | None:
        """What Run would run; None without a model, or while a number is invalid."""
        if self._question is None or not self._all_models or self._problem:
            return None
        given = {key: field.value() for key, field in self._fields.items()}
        model = self._all_models[max(self._model.currentIndex(), 0)]
        text = self._text.file if self._question.takes_text else ""
        journal = self._journal.file if self._question.takes_journal else ""
        short = self._forms.checkedId() == 0
        return Request(self._question.id, str(model.path), given, short=short, text_file=text, journal_file=journal)

    @property
    def _problem(self) -> str:
        """What is wrong with the first invalid number."""
        return next((field.problem for field in self._fields.values() if field.problem), "")

    @property
    def _all_models(self) -> list[ModelChoice]:
        return ([self._file] if self._file else []) + self._models

    def _fill_models(self) -> None:
        self._model.clear()
        for model in self._all_models:
            tip = plain_tip(f"{model.path}\n{model.where}")
            self._model.addItem(model_name(model.path))
            self._model.setItemData(self._model.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
        self._model.addItem(tr(OTHER))
        paths = [model.path for model in self._all_models]
        self._model.setCurrentIndex(paths.index(self._chosen) if self._chosen in paths else 0)

    def _on_model(self, index: int) -> None:
        if index < len(self._all_models):
            self._chosen = self._all_models[index].path
        elif file := ask_for_file(self, tr("Choose a model"), tr("GGUF models (*.gguf);;All files (*)")):
            self._file, self._chosen = ModelChoice(file, tr("chosen")), file
        self._fill_models()
        self._ask()

    @property
    def _form(self) -> tuple[str, bool]:
        """The question, and whether its short form is chosen."""
        return self._question.id if self._question else "", self._forms.checkedId() == 0

    def _on_form(self) -> None:
        self._typed.pop(self._form, None)
        self._fill_fields()
        self._ask()

    def _fill_fields(self) -> None:
        """With the values of the form, or those that a person typed in their place."""
        typed, short = self._typed.get(self._form, {}), self._forms.checkedId() == 0
        for parameter in self._question.parameters if self._question else ():
            field = self._fields[parameter.key]
            value = typed.get(parameter.key, parameter.short if short else parameter.default)
            with QSignalBlocker(field):
                if isinstance(field, WholeField):
                    field.setValue(int(value))
                else:
                    field.setValue(value)

    def _on_typed(self) -> None:
        self._typed[self._form] = {key: field.value() for key, field in self._fields.items()}
        self._ask_soon()

    def _ask_soon(self) -> None:
        self._can, self._wants = None, False
        self._show_state()
        self._asking.start()

    def _ask(self, *, wants: bool = False) -> None:
        """What it takes. `wants`: it runs as soon as that is known."""
        self._asking.stop()
        self._can, self._wants = None, wants
        self._show_state()
        request = self.request
        if request is not None:
            self._commands.lab.ask_needs(request)
            return
        problem = self._problem
        self._needs.setText(problem or tr("Open a model, or choose a file, to run an experiment on."))
        set_tone(self._needs, "danger" if problem else "secondary")

    def _on_run(self) -> None:
        """Run it as soon as it is known that it can: a number may have been changed just now."""
        if (request := self.request) is None:
            return
        if self._can:
            self._commands.lab.begin(request)
        elif self._can is None:
            self._ask(wants=True)

    def _show_state(self) -> None:
        self.run_button.setEnabled(self._can is not False and self.request is not None and not self._busy)
        self.run_button.setToolTip(
            tr("“{busy}” is running").format(busy=self._busy) if self._busy else tr("Run it in its own process")
        )
        for field in self._fields.values():
            field.setEnabled(not self.cancel_button.isVisibleTo(self))


def _field(parameter: Parameter) -> WholeField | RealField:
    field: WholeField | RealField
    if parameter.whole:
        field = WholeField(int(parameter.low), int(parameter.high))
    else:
        field = RealField(parameter.low, parameter.high, decimals=3)
    field.setAlignment(Qt.AlignmentFlag.AlignRight)
    field.setAccessibleName(tr(parameter.title))
    field.setAccessibleDescription(f"{tr(parameter.description)}, {_range(parameter)}")
    field.setToolTip(f"--set {parameter.key}={parameter.default:g}")
    return field


def _range(parameter: Parameter) -> str:
    return tr("{low} to {high}").format(low=f"{parameter.low:,g}", high=f"{parameter.high:,g}")
