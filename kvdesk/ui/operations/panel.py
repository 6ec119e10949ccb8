"""Operations on the cache by hand: a target, a range of positions, a button for each llama.cpp call. Folded away.

Every button shows its call while it is under the mouse or has the focus; what cannot be done says why in the same
place. Cells selected in the map and the menu of a message fill the target in.
"""

from typing import Final

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QPushButton, QWidget

from kvdesk.message import ConversationId
from kvdesk.protocol.operations import BatchRefused
from kvdesk.session import operation_specs as specs
from kvdesk.session.state import Target
from kvdesk.translation import tr
from kvdesk.ui.operations.leaving_row import LeavingRow
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.collapsible import Collapsible
from kvdesk.ui.widgets.controls import label, push_button, set_tone
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.number_fields import WholeField

_COLUMNS: Final = 4
_MAX_POS: Final = 2**31 - 1


class OperationsPanel(QWidget):
    """Asks for operations; what they did is shown elsewhere."""

    toggled = Signal(bool)  # unfolded, or folded again
    range_chosen = Signal(int, int, int)  # seq_id, p0, p1: by hand in this form

    def __init__(self, kit: Kit, *beside: QWidget) -> None:
        super().__init__()
        theme = kit.theme
        self._kit, self._state = kit, kit.store
        self._is_behind = False  # the form does not show the state yet
        self._targets: tuple[Target, ...] = ()
        self._for: ConversationId | None = None  # the conversation for which the target is chosen
        self._is_chosen = False  # a target was, by hand or with its cells
        self._spec = specs.REMOVE  # its call is shown
        self._buttons: dict[specs.OperationSpec, QPushButton] = {}
        self._target = Choice()
        self._target.setAccessibleName(tr("Sequence to operate on"))
        self._target.setSizeAdjustPolicy(Choice.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self._target.setMinimumContentsLength(8)
        self._target.setPlaceholderText(tr("Nothing is in the cache"))
        self._target.currentIndexChanged.connect(self._on_target_changed)
        self._p0 = _spin(tr("First position"), -1, tr("start"))
        self._p1 = _spin(tr("Position after the last"), -1, tr("end"))
        self._shift = _spin(tr("Positions to shift by"), -_MAX_POS)
        self._shift.setValue(-1)
        self._shift.setToolTip(
            tr("Positions move later by this number, or earlier with a minus: -10 closes a gap of 10 before them")
        )
        self._pos = _spin(tr("Position to try a token at"), 0)
        self._pos.setToolTip(
            tr("Where one token is tried: only the position right after the sequence's last one is taken")
        )
        for box in (self._p0, self._p1):
            box.valueChanged.connect(self._on_range_changed)
            box.problem_changed.connect(self._show)
        for box in (self._shift, self._pos):
            box.valueChanged.connect(self._show)
            box.problem_changed.connect(self._show)
        self._call = label("", family="mono", wrap=True, selectable=True)
        self._remark = label("", tone="secondary", scale="small", wrap=True)
        self.leaving = LeavingRow(kit)
        self.leaving.range_wanted.connect(self._on_range_wanted)
        self._collapsible = Collapsible(theme, tr("Operations"), self._make_body(), *beside)
        self._collapsible.button.setToolTip(tr("Change the cache by hand: remove, fork, shift, swap, compact"))
        self._collapsible.toggled.connect(self._on_toggled)
        boxes.column(self._collapsible, on=self, margins=0)
        self._show()

    @property
    def chosen(self) -> specs.Chosen:
        index = self._target.currentIndex()
        target = self._targets[index] if 0 <= index < len(self._targets) else None
        return specs.Chosen(target, self._p0.value(), self._p1.value(), self._shift.value(), self._pos.value())

    @property
    def is_open(self) -> bool:
        return self._collapsible.is_open

    def set_open(self, is_open: bool) -> None:
        """Unfold the form, or fold it away."""
        self._collapsible.button.setChecked(is_open)

    def button(self, spec: specs.OperationSpec) -> QPushButton:
        self._catch_up()
        return self._buttons[spec]

    def show_state(self) -> None:
        """Other targets: shown at once when the form is open, else when it is opened."""
        self._is_behind = True
        if self.is_open:
            self._catch_up()

    def _catch_up(self) -> None:
        """The target is the shown conversation's, unless another was chosen since."""
        if not self._is_behind:
            return
        self._is_behind = False
        state, before = self._state, self.chosen.target
        if state.selected != self._for:
            self._for, self._is_chosen = state.selected, False
        targets = state.targets()
        names = [_name(target) for target in targets]
        if names != [self._target.itemText(i) for i in range(self._target.count())]:
            with QSignalBlocker(self._target):
                self._target.clear()
                self._target.addItems(names)
        self._targets = targets
        with QSignalBlocker(self._target):
            self._target.setCurrentIndex(self._index_of(before))
        after = self.chosen.target
        if before is not None and (after is None or _key(after) != _key(before)):
            self._forget_range()
        self._follow_end(before)
        self._show()

    def _forget_range(self) -> None:
        """From start to end: positions of another sequence mean nothing here."""
        for box in (self._p0, self._p1):
            with QSignalBlocker(box):
                box.setValue(-1)

    def _index_of(self, before: Target | None) -> int:
        """The target that was chosen; else that of the shown conversation, or the one before; -1 without any."""
        own = self._state.target_of(self._state.selected)
        for wanted in (before, own) if self._is_chosen else (own, before):
            for i, target in enumerate(self._targets):
                if wanted is not None and _key(target) == _key(wanted):
                    return i
        return 0 if self._targets else -1

    def set_range(self, seq_id: int, p0: int, p1: int) -> None:
        """Fill the target in: positions `[p0, p1)` of a sequence, -1 for start and end."""
        self._catch_up()
        for i, target in enumerate(self._targets):
            if target.seq_id == seq_id:
                self._target.setCurrentIndex(i)
                self._is_chosen = True
        for box, value in ((self._p0, p0), (self._p1, p1)):
            with QSignalBlocker(box):
                box.setValue(value)
        self._show()

    def offer_undo(self, offered: bool) -> None:
        """Whether the last operation can be undone from here; not if its effect has its own button."""
        self._buttons[specs.UNDO].setVisible(offered)

    def show_refused(self, event: BatchRefused) -> None:
        """llama.cpp said no to a token that was tried."""
        self._remark.setText(
            tr("{sentence} (X = {x}, Y = {y}: Y must be X + 1)").format(
                sentence=event.sentence, x=f"{event.x:,}", y=f"{event.y:,}"
            )
        )
        set_tone(self._remark, "warning")

    def _on_toggled(self, is_open: bool) -> None:
        if is_open:
            self._catch_up()
        self.toggled.emit(is_open)

    def _on_target_changed(self) -> None:
        self._is_chosen = True
        self._forget_range()
        self._follow_end(None)
        self._show()

    def _follow_end(self, before: Target | None) -> None:
        """The position that llama.cpp would take, unless another one was typed."""
        target = self.chosen.target
        typed = before is not None and self._pos.value() != before.pos_max + 1
        if target is not None and (not typed or before is None or _key(before) != _key(target)):
            with QSignalBlocker(self._pos):
                self._pos.setValue(target.pos_max + 1)

    def _on_range_changed(self) -> None:
        self._show()
        if target := self.chosen.target:
            self.range_chosen.emit(target.seq_id, self._p0.value(), self._p1.value())

    def _on_range_wanted(self, seq_id: int, p0: int, p1: int) -> None:
        self.set_range(seq_id, p0, p1)
        self.range_chosen.emit(seq_id, p0, p1)

    def _press(self, spec: specs.OperationSpec) -> None:
        chosen = self.chosen
        spec = specs.alternative(spec, chosen.target)
        if not self._refusal(spec, chosen):
            specs.carry_out(spec, chosen, self._state, self._kit.commands)

    def _refusal(self, spec: specs.OperationSpec, chosen: specs.Chosen) -> str:
        """Why the operation cannot be done; also a number that cannot be read."""
        fields = [self._p0, self._p1] if spec.takes_range else []
        if spec.field:
            fields.append({"shift": self._shift, "pos": self._pos}[spec.field])
        return specs.refusal(spec, chosen, self._state) or next(filter(None, (field.problem for field in fields)), "")

    def _show(self) -> None:
        chosen, state = self.chosen, self._state
        self.leaving.show_chosen(chosen)
        for spec, button in self._buttons.items():
            shown = specs.alternative(spec, chosen.target)
            why = self._refusal(shown, chosen)
            button.setEnabled(not why)
            button.setText(tr(shown.label))
            button.setAccessibleName(tr(shown.label))
            button.setToolTip(
                "\n".join(line for line in (tr(shown.tip), specs.call_of(shown, chosen, state), why) if line)
            )
        shown = specs.alternative(self._spec, chosen.target)
        self._call.setText(specs.call_of(shown, chosen, state))
        why = self._refusal(shown, chosen)
        self._remark.setText(
            f"{tr(shown.label).rstrip('…')}: {why}" if why else specs.remark(shown, chosen, state) or tr(shown.tip)
        )
        set_tone(self._remark, "secondary")

    def _make_body(self) -> QWidget:
        grid = boxes.grid(4, 4, *[1] * _COLUMNS)
        grid.addWidget(label(tr("Sequence"), tone="secondary", scale="small"), 0, 0)
        grid.addWidget(self._target, 0, 1, 1, 3)
        grid.addWidget(label(tr("Positions"), tone="secondary", scale="small"), 1, 0)
        to = label(tr("to"), tone="secondary", scale="small")
        between = boxes.row((self._p0, 1), to, (self._p1, 1), spacing=8)
        grid.addLayout(between, 1, 1, 1, 3)
        grid.setRowMinimumHeight(2, 4)
        fields = {"shift": self._shift, "pos": self._pos}
        place = 3 * _COLUMNS  # below the target and the range
        for spec in specs.OPERATIONS:
            if spec in (specs.SWAP_IN, specs.UNDO):  # one shares a button, one is beside the call
                continue
            grid.addWidget(self._make_button(spec), *divmod(place, _COLUMNS))
            place += 1
            if spec.field:
                grid.addWidget(fields[spec.field], *divmod(place, _COLUMNS))
                place += 1
        undo = self._make_button(specs.UNDO)
        call = boxes.row((self._call, 1), (undo, 0, Qt.AlignmentFlag.AlignTop), spacing=8)
        body = QWidget()
        boxes.column(grid, self.leaving, call, self._remark, on=body, margins=(0, 4, 0, 0), spacing=8)
        for widget in (self._target, self._p0, self._p1, self._shift, self._pos):
            widget.setProperty("scale", "small")
        return body

    def _make_button(self, spec: specs.OperationSpec) -> QPushButton:
        press = self._kit.act(spec.action) if spec.action else lambda: self._press(spec)
        button = push_button(tr(spec.label), scale="small", clicked=press)
        button.setMinimumWidth(0)
        button.setProperty("destructive", spec is specs.CLEAR)
        button.installEventFilter(self)
        self._buttons[spec] = button
        return button

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Enter, QEvent.Type.FocusIn):
            for spec, button in self._buttons.items():
                if button is watched and spec is not self._spec:
                    self._spec = spec
                    self._show()
        return super().eventFilter(watched, event)


def _spin(name: str, low: int, special: str = "") -> WholeField:
    box = WholeField(low, _MAX_POS)
    if special:
        box.setSpecialValueText(special)
        box.setValue(low)
    box.setAccessibleName(name)
    box.setToolTip(name)
    box.setMinimumWidth(48)
    return box


def _key(target: Target) -> tuple[int, str | None]:
    return target.seq_id, target.conversation


def _name(target: Target) -> str:
    swapped = "  ·  " + tr("swapped out") if target.swapped_bytes else ""
    return f"{target.title}{swapped}"
