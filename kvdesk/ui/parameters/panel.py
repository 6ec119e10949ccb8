"""The parameters of the chat that is shown, and what applying them costs, said before it is done."""

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QSignalBlocker
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QButtonGroup, QFrame, QHBoxLayout, QStackedWidget, QToolButton, QWidget

from kvdesk.conversations.parameters import Parameters
from kvdesk.protocol.prompt import PromptPreview
from kvdesk.settings import Preset
from kvdesk.translation import tr
from kvdesk.ui.parameters.sampling_page import SamplingPage
from kvdesk.ui.parameters.template_page import TemplatePage
from kvdesk.ui.parameters.thinking_row import ThinkingRow
from kvdesk.ui.parameters.words import cost, template_prompt
from kvdesk.ui.settings.preset_bar import PresetBar
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton, label, on_ground, push_button, set_tone, tab_button
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.timers import once
from kvdesk.ui.widgets.written import text_box
from kvdesk.values import replace

LEAST_PX: Final = 350
_ASK_MS: Final = 300  # after the last keystroke


class ParametersPanel(QWidget):
    """Beside the chat. Nothing counts before `apply`; what is edited and not applied can be asked for and shown again.
    `ask`: for the prompt with these parameters; the answer has the same number (`show_preview`).
    """

    def __init__(self, kit: Kit, apply: Callable[[Parameters], None], ask: Callable[[Parameters, int], None]) -> None:
        super().__init__()
        theme, settings = kit.theme, kit.store.settings
        self._kit, self._apply, self._ask_for = kit, apply, ask
        self.setAccessibleName(tr("Parameters of this chat"))
        on_ground(self, "panel")
        self._theme = theme
        self._settings = settings
        self._applied = Parameters()
        self._preview: PromptPreview | None = None
        self._previewed: Parameters | None = None  # with which `_preview` was asked for
        self._missing = ""
        self._n_asked = 0
        self._asked: Parameters | None = None  # the question that is not answered yet
        self._title = ElidedLabel(tone="secondary", scale="small")
        self.prompt_edit = text_box(tr("System prompt of this chat"), _no_prompt())
        self.prompt_edit.textChanged.connect(self._on_edited)
        self.sampling_page = SamplingPage(theme)
        self.sampling_page.edited.connect(self._on_edited)
        self.thinking_row = ThinkingRow()
        self.thinking_row.edited.connect(self._on_edited)
        self.template_page = TemplatePage(theme)
        self.template_page.edited.connect(self._on_edited)
        self.presets = PresetBar(theme, lambda: (self.prompt_edit.toPlainText(), self.sampling_page.shown))
        self.presets.chosen.connect(self._on_preset_chosen)
        self.presets.changed.connect(lambda presets: settings.change(presets=presets))
        self._tabs = QButtonGroup(self)
        self._pages = QStackedWidget()
        self._cost = label("", wrap=True)
        self._asking = once(self, _ASK_MS, self._ask)
        boxes.column(
            self._make_head(),
            self._title,
            self.presets,
            self.thinking_row,
            self._make_tabs(),
            (self._pages, 1),
            self._make_cost(),
            self._make_buttons(),
            on=self,
            margins=(12, 8, 12, 12),
            spacing=8,
        )
        theme.follow(self._fit)

    def _fit(self) -> None:
        """Never narrower than its contents."""
        self.setMinimumWidth(max(self._theme.px(LEAST_PX), self.minimumSizeHint().width()))

    # --- public -------------------------------------------------------------------------------------------------------

    @property
    def parameters(self) -> Parameters:
        """What is edited."""
        return Parameters(
            self.prompt_edit.toPlainText(),
            self.sampling_page.sampling,
            self.template_page.template,
            self.thinking_row.thinking,
        )

    @property
    def is_edited(self) -> bool:
        """Whether something is not applied."""
        return self.parameters != self._applied

    def tab(self, index: int) -> QToolButton:
        """The button of a page: system prompt, sampling, template."""
        button = self._tabs.button(index)
        assert isinstance(button, QToolButton)
        return button

    def show_chat(self, title: str, applied: Parameters, edited: Parameters | None = None) -> None:
        """Another chat. `edited`: what was edited of it before, and not applied."""
        self._title.setText(title)
        self._applied, self._previewed, self._asked = applied, None, None
        self._set(edited or applied)
        self._on_edited()

    def show_applied(self, title: str, applied: Parameters) -> None:
        """The parameters that count now, of the same chat: what is edited stays."""
        self._title.setText(title)
        before, self._applied = self._applied, applied
        if self.parameters == before:
            self._set(applied)
        self._on_edited()

    def show_settings(self) -> None:
        """What new chats begin with, and how chats without their own sampling are sampled."""
        self.sampling_page.show_general(self._settings.current.sampling)
        self._show_state()

    def show_missing(self, sentence: str) -> None:
        """Why the engine shows no prompts; "" if it does."""
        self._missing = sentence
        self.template_page.show_missing(sentence)
        self.ask_again()

    def ask_again(self) -> None:
        """The prompt, the cache or the model has changed."""
        self._asked = None
        if self.isVisible() and not self._missing:
            self._asking.start()

    def show_preview(self, preview: PromptPreview) -> None:
        """The answer to a question; ignored if another one was asked since."""
        if preview.number != self._n_asked or self._asked is None:
            return
        asked, self._asked = self._asked, None
        if asked != self.parameters:
            self._ask()
            return
        self._preview, self._previewed = preview, asked
        self.template_page.show_preview(preview)
        if not asked.system_prompt.strip():
            theirs = template_prompt(preview)
            said = tr("The template says, as long as you write nothing here:")
            self.prompt_edit.setPlaceholderText(f"{said}\n\n{theirs}" if theirs else _no_prompt())
            self.prompt_edit.viewport().update()  # Qt draws another one only with the next change
        self._show_state()

    # --- private ------------------------------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._pages.currentWidget() is self.prompt_edit:
            self.prompt_edit.setFocus()
        self.ask_again()

    def _set(self, parameters: Parameters) -> None:
        with QSignalBlocker(self.prompt_edit), QSignalBlocker(self.sampling_page), QSignalBlocker(self.template_page):
            if self.prompt_edit.toPlainText() != parameters.system_prompt:
                self.prompt_edit.setPlainText(parameters.system_prompt)
            self.sampling_page.set_sampling(parameters.sampling)
            self.template_page.set_template(parameters.template)
            self.thinking_row.set_thinking(parameters.thinking)

    def _on_edited(self) -> None:
        if self._previewed != self.parameters:
            self._preview = None
        self._show_state()
        if self.isVisible() and not self._missing:
            self._asking.start()

    def _ask(self) -> None:
        """One question at a time: the engine may be at work."""
        if self._asked is None:
            self._asked = self.parameters
            self._n_asked += 1
            self._ask_for(self._asked, self._n_asked)

    def _show_state(self) -> None:
        edited, preview, model = self.parameters, self._preview, self._kit.store.model
        self.thinking_row.show_template(edited.template or (model.template if model is not None else ""))
        if self._missing and replace(edited, sampling=None) != replace(self._applied, sampling=None):
            said, tone = tr("This engine does not say what that costs."), "secondary"
        else:
            said, tone = cost(self._applied, edited, preview)
        problem = self.sampling_page.problem
        self._cost.setText(problem or said)
        set_tone(self._cost, "danger" if problem else tone)
        self.presets.show_values(self._settings.current.presets, self.sampling_page.shown, edited.system_prompt)
        other_template = edited.template != self._applied.template and edited.template
        unchecked = other_template and (preview is None or preview.problem)
        self.apply_button.setEnabled(edited != self._applied and not unchecked and not problem)
        self.apply_button.setToolTip(tr("A template is checked on this chat first") if unchecked else "")
        self.defaults_button.setEnabled(edited != Parameters.default(self._settings.current))

    def _on_apply_clicked(self) -> None:
        self.tab(self._tabs.checkedId()).setFocus()  # Apply is disabled now
        self._apply(self.parameters)

    def _on_preset_chosen(self, preset: Preset) -> None:
        """Its values count when they are applied, as any others."""
        prompt = self.prompt_edit.toPlainText() if preset.system_prompt is None else preset.system_prompt
        self._set(replace(self.parameters, system_prompt=prompt, sampling=preset.sampling))
        self._on_edited()

    def _on_defaults_clicked(self) -> None:
        self._set(Parameters.default(self._settings.current))
        self._on_edited()

    def _make_head(self) -> QHBoxLayout:
        hide, tip = self._kit.act("chat.parameters"), tr("Hide the parameters (Ctrl+J)")
        close = IconButton(self._theme, "close", tr("Hide the parameters"), tip, clicked=hide)
        return boxes.row((label(tr("Parameters"), weight="strong"), 1), close, spacing=8)

    def _make_tabs(self) -> QHBoxLayout:
        pages = (
            (tr("System prompt"), self.prompt_edit),
            (tr("Sampling"), self.sampling_page),
            (tr("Template and prompt"), self.template_page),
        )
        for index, (name, page) in enumerate(pages):
            self._pages.addWidget(page)
            self._tabs.addButton(tab_button(name, checked=index == 0), index)
        self._tabs.idClicked.connect(self._pages.setCurrentIndex)
        return boxes.row(*self._tabs.buttons(), boxes.Stretch(1), spacing=4)

    def _make_cost(self) -> QFrame:
        card = QFrame()
        card.setProperty("card", "effect")
        card.setAccessibleName(tr("What this costs in the cache"))
        boxes.column(self._cost, on=card, margins=(12, 8, 12, 8))
        return card

    def _make_buttons(self) -> QHBoxLayout:
        self.apply_button = push_button(tr("Apply"), primary=True, clicked=self._on_apply_clicked)
        self.defaults_button = push_button(
            tr("As in a new chat"),
            tip=tr("System prompt and sampling of the settings, template of the model"),
            clicked=self._on_defaults_clicked,
        )
        return boxes.row(self.defaults_button, boxes.Stretch(1), self.apply_button, spacing=8)


def _no_prompt() -> str:
    return tr("No system prompt. Say here how the model is to answer in this chat.")
