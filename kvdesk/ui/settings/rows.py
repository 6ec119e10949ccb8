"""Rows of settings: a control for each field of a declared table, with its default, range, title and description, in
groups that can be folded, and found by a few letters.
"""

from collections.abc import Iterable
from math import ceil
from typing import Any, Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QCheckBox, QLabel, QVBoxLayout, QWidget

from kvdesk.folding import fold
from kvdesk.settings import llama_name
from kvdesk.settings.texts import texts_of
from kvdesk.translation import tr
from kvdesk.ui.settings.fields import bounds, control_of, is_wide, problem_of, set_value, value_of
from kvdesk.ui.settings.groups import groups_of
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.collapsible import Collapsible
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton, label, show_text
from kvdesk.ui.widgets.number_fields import WholeField
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.values import dataclass, field

_FIELD_PX: Final = 176  # every choice in full


class _WrappedLabel(QLabel):
    """In one line if there is room, else in several: a QLabel that wraps asks for less width than its text has."""

    def __init__(self, text: str) -> None:
        super().__init__(text, textFormat=Qt.TextFormat.PlainText, wordWrap=True)

    def sizeHint(self) -> QSize:
        advance = QFontMetricsF(self.font()).horizontalAdvance(self.text())
        width = ceil(advance) + 2  # letters lie between pixels, and on a fine screen the layout rounds each of them up
        return QSize(width, self.heightForWidth(width))


class SettingRow(QWidget):
    """Title, llama.cpp's name beside it if there is one, and description; the control at the right, or under them.

    `default`: None without a value to go back to.
    """

    was_reset = Signal()

    def __init__(self, theme: Theme, info: FieldInfo, control: QWidget, default: Any = None) -> None:
        super().__init__()
        self._theme = theme
        self.control = control
        self._default = default
        title, about = texts_of(info)
        choices = (control.itemText(i) for i in range(control.count())) if isinstance(control, Choice) else ()
        self._words = fold(" ".join((title, llama_name(info), about, *choices)))
        caption = _WrappedLabel(title)
        caption.setBuddy(control)
        reset = tr("Reset {name}").format(name=title)
        self.reset_button = IconButton(theme, "again", reset, _reset_tip(default), clicked=self._on_reset_clicked)
        policy = self.reset_button.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.reset_button.setSizePolicy(policy)
        self.reset_button.hide()
        names = boxes.row(caption, boxes.Stretch(), self.reset_button, spacing=8)
        if theirs := llama_name(info):
            beside = ElidedLabel(theirs, tone="secondary", family="mono")
            beside.setAccessibleDescription(tr("llama.cpp's name: {name}").format(name=theirs))
            names.insertWidget(1, beside, 1)
        described = label(_about(info, control, default), tone="secondary", scale="small", wrap=True)
        self.problem = label("", tone="danger", scale="small", wrap=True)
        self.problem.hide()
        words = boxes.column(names, described, self.problem, spacing=0)
        column = boxes.column(on=self, margins=(0, 4, 0, 4), spacing=4)
        line = boxes.row((words, 1), spacing=16)
        column.addLayout(line)
        control.setProperty("bare", isinstance(control, QCheckBox))
        if is_wide(control):
            column.addWidget(control)
        else:
            line.addWidget(control, 0, Qt.AlignmentFlag.AlignVCenter)
        theme.follow(self._fit)

    def _fit(self) -> None:
        """As large as the text asks for."""
        self.reset_button.setFixedHeight(self._theme.px(20))
        if not is_wide(self.control) and not isinstance(self.control, QCheckBox):
            self.control.setFixedWidth(self._theme.px(_FIELD_PX))

    @property
    def changed(self) -> bool:
        """Whether it shows something else than the default."""
        return self._default is not None and value_of(self.control) != self._default

    def matches(self, words: Iterable[str]) -> bool:
        return all(word in self._words for word in words)

    def show_state(self) -> None:
        """Offer the default where it is not shown, and say what is wrong with a number."""
        problem = "" if is_wide(self.control) else problem_of(self.control)  # wide ones say it themselves
        show_text(self.problem, problem)
        self.reset_button.setVisible((self.changed or bool(problem)) and self.control.isEnabled())

    def _on_reset_clicked(self) -> None:
        set_value(self.control, self._default)
        self.control.setFocus()
        self.was_reset.emit()


@dataclass(slots=True)
class _Group:
    """Rows under a title that folds them away; without one they are always shown."""

    title: str = ""
    box: Collapsible | None = None
    was_open: bool = False  # before rows in it were searched
    rows: list[SettingRow] = field(default_factory=list)


@dataclass(slots=True)
class _Section:
    title: str
    box: QWidget
    column: QVBoxLayout
    n_found: int = 0
    others: list[tuple[QWidget, str]] = field(default_factory=list)  # widgets that are no rows, and their words
    groups: list[_Group] = field(default_factory=list)


class SettingRows(QWidget):
    """Sections of rows, filled from above: all of them, or the one of `show_section`. `edited`: a person changed a
    value.
    """

    edited = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._fields: dict[tuple[str, str], SettingRow] = {}
        self._filtered = False
        self._alone: int | None = None  # the section that is shown
        self._column = boxes.column(on=self, margins=0, spacing=20)
        self._sections: list[_Section] = []
        self.edited.connect(self._show_states)

    def field(self, table: str, name: str) -> QWidget:
        """The control of one setting, such as ("sampling", "top_k")."""
        return self._fields[table, name].control

    def fields(self, table: str) -> list[QWidget]:
        """The controls of one table."""
        return [row.control for (of, _), row in self._fields.items() if of == table]

    def set_enabled(self, table: str, enabled: bool) -> None:
        """Whether the settings of one table can be changed."""
        for control in self.fields(table):
            control.setEnabled(enabled)
        self._show_states()

    def values(self, table: str) -> dict[str, Any]:
        """What the controls of one table show, by the names of its fields."""
        return {name: value_of(row.control) for (of, name), row in self._fields.items() if of == table}

    @property
    def problem(self) -> str:
        """What is wrong with the first entry that is invalid; "" if all are valid."""
        return next(filter(None, (problem_of(row.control) for row in self._fields.values())), "")

    def show_values(self, table: str, values: BaseModel) -> None:
        """Show these values of one table; that is no edit."""
        for (of, name), row in self._fields.items():
            if of == table:
                set_value(row.control, getattr(values, name))
        self._show_states()

    # --- filling ------------------------------------------------------------------------------------------------------

    def add_heading(self, text: str) -> None:
        """A heading over what follows."""
        heading = label(text, scale="large")
        heading.setContentsMargins(0, 0, 0, 4)
        self._add_section(text).column.addWidget(heading)

    def _add_section(self, title: str) -> _Section:
        box = QWidget()
        column = boxes.column(on=box, margins=0, spacing=4)
        self._column.addWidget(box)
        self._sections.append(_Section(title, box, column))
        return self._sections[-1]

    @property
    def _last(self) -> _Section:
        """The section that is being filled; one without a heading at first."""
        return self._sections[-1] if self._sections else self._add_section("")

    def add_widget(self, widget: QWidget, words: str = "") -> None:
        """Anything else, found by these words; without them it is shown with its section."""
        self._last.column.addWidget(widget)
        self._last.others.append((widget, fold(words)))

    def add_row(self, info: FieldInfo, widget: QWidget) -> None:
        """A row with a control that the caller made."""
        row = SettingRow(self._theme, info, widget)
        self._last.column.addWidget(row)
        self._last.groups.append(_Group(rows=[row]))

    def add_table(self, table: str, model: type[BaseModel]) -> None:
        """A row for each field of `model`. `table`: the name by which its controls and values are asked for."""
        defaults = model()
        for title, names in groups_of(model):
            rows = [self._table_row(table, name, model.model_fields[name], getattr(defaults, name)) for name in names]
            group = _Group(title, rows=rows)
            self._last.groups.append(group)
            if not title:
                for row in rows:
                    self._last.column.addWidget(row)
                continue
            content = QWidget()
            inner = boxes.column(on=content, margins=(20, 0, 0, 8), spacing=4)
            for row in rows:
                inner.addWidget(row)
            group.box = Collapsible(self._theme, title, content)
            self._last.column.addWidget(group.box)

    def _table_row(self, table: str, name: str, info: FieldInfo, default: Any) -> SettingRow:
        control = control_of(self._theme, info, self.edited)
        title, about = texts_of(info)
        control.setAccessibleName(title or name)
        control.setAccessibleDescription(about)
        row = self._fields[table, name] = SettingRow(self._theme, info, control, default)
        row.was_reset.connect(self.edited)
        return row

    # --- finding ------------------------------------------------------------------------------------------------------

    @property
    def titles(self) -> tuple[str, ...]:
        """Of the sections under a heading."""
        return tuple(section.title for section in self._sections if section.title)

    @property
    def found_sections(self) -> frozenset[str]:
        """Titles of those that have something of what is searched; all without a search."""
        return frozenset(section.title for section in self._sections if section.n_found or not self._filtered)

    def show_section(self, title: str) -> None:
        """This one alone, as long as nothing is searched."""
        self._alone = next(n for n, section in enumerate(self._sections) if section.title == title)
        if not self._filtered:
            self._show_sections()

    def section_of(self, table: str) -> str:
        """The title over the settings of a table."""
        (row, *_) = (row for (of, _), row in self._fields.items() if of == table)
        return next(section.title for section in self._sections if any(row in group.rows for group in section.groups))

    def _show_sections(self) -> None:
        for n, section in enumerate(self._sections):
            section.box.setVisible(section.n_found > 0 if self._filtered else self._alone in (None, n))

    def filter(self, text: str) -> int:
        """Show only what has all words of `text`, in groups that are open for it, of all sections; without one as
        before. How many.
        """
        words = fold(text).split()
        n_shown = 0
        for section in self._sections:
            n_before = n_shown
            for widget, known in section.others:
                if known:
                    found = all(word in known for word in words)
                    widget.setVisible(found)
                    n_shown += found
            for group in section.groups:
                found_rows = [row for row in group.rows if row.matches(words)]
                for row in group.rows:
                    row.setVisible(row in found_rows)
                n_shown += len(found_rows)
                if group.box is not None:
                    group.box.setVisible(bool(found_rows))
                    if not self._filtered:
                        group.was_open = group.box.is_open
                    group.box.button.setChecked(bool(words) or group.was_open)
            section.n_found = n_shown - n_before
        self._filtered = bool(words)
        self._show_sections()
        return n_shown

    def _show_states(self) -> None:
        """Which rows can be reset, and in which groups they are."""
        for section in self._sections:
            for group in section.groups:
                n_changed = 0
                for row in group.rows:
                    row.show_state()
                    n_changed += row.changed
                if group.box is not None:
                    changed = tr("{n} changed").format(n=n_changed)
                    group.box.set_title(f"{group.title} · {changed}" if n_changed else group.title)


def _about(info: FieldInfo, control: QWidget, default: Any) -> str:
    """The description, and the default and range of a number."""
    about = texts_of(info)[1]
    if isinstance(default, bool) or not isinstance(default, int | float) or is_wide(control):
        return about
    low, high = bounds(info)
    if high > 2**31:  # the seed
        return about
    numbers = {"default": _shown(default), "low": _shown(low), "high": _shown(high)}
    if isinstance(control, WholeField) and not control.isGroupSeparatorShown():
        numbers = {name: f"{value:.0f}" for name, value in (("default", default), ("low", low), ("high", high))}
    return tr("{about}. Default {default}, from {low} to {high}").format(about=about, **numbers)


def _shown(value: Any) -> str:
    return f"{value:,.4f}".rstrip("0").rstrip(".")


def _reset_tip(default: Any) -> str:
    if isinstance(default, int | float) and not isinstance(default, bool):
        return tr("Back to the default: {value}").format(value=_shown(default))
    return tr("Back to the default")
