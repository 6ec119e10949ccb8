"""The one line at the bottom: threads, speed, K/V bytes, and how far the map can be trusted."""

from typing import Final

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from kvdesk.cache.snapshot import Verification
from kvdesk.protocol import calls
from kvdesk.protocol.cache import AuditCache, Audited, LoadSample, SaveReport
from kvdesk.protocol.chat import TurnEnded
from kvdesk.protocol.features import Feature
from kvdesk.quantities import rate_text
from kvdesk.session import Changed
from kvdesk.session.changed import Update
from kvdesk.translation import plural, tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.allow import allow
from kvdesk.ui.widgets.choose_file import ask_where_to_save
from kvdesk.ui.widgets.controls import ElidedLabel, NumberLabel, label, link_button, on_ground, set_tone
from kvdesk.ui.widgets.kit import Kit
from kvdesk.viewmodel.cells.readout import kv_used_bytes, megabytes, totals, verification_line

_MISSING: Final = Changed.FEATURES | Changed.MODEL
_SPEED: Final = Changed.NUMBERS | Changed.RUNNING
_MARGIN_PX: Final = 12
_GAP_PX: Final = 16


class StatusBar(QWidget):
    """Fields of fixed width, so that nothing jumps while the numbers change."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._kit, self._store = kit, kit.store
        on_ground(self, "panel")
        self._verification: Verification | None = None
        self._audited = ""
        self._threads = _field(tr("No context"), tr("Threads used to decode"))
        self._speed = _number(tr("{n} tok/s").format(n="8,888"), tr("Decode speed of the answers that are written now"))
        self._bytes = _number("", tr("Memory of K and V: used, of what is allocated"))
        self._types = _field("", tr("Data types of K and V, and flash attention"))
        self._trust = ElidedLabel(scale="small", tone="secondary")
        self._trust.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        tip = tr("Saves the differences between the map and the engine as JSON")
        self._save = link_button(tr("Save report…"), tip=tip, clicked=self._on_save_clicked)
        self._save.hide()
        self._audit = link_button(tr("Audit"), clicked=lambda: kit.commands.submit(AuditCache()))
        for button in (self._save, self._audit):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._first = [one.status(kit) for one in kit.slices if one.status is not None]  # whatever the engine says
        fields = self._threads, self._speed, self._bytes, self._types
        trust = (self._trust, 1), self._save, self._audit
        margins = _MARGIN_PX, 4, _MARGIN_PX, 4
        boxes.row(*self._first, *fields, *trust, on=self, margins=margins, spacing=_GAP_PX)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.destroyed.connect(kit.store.listen(self._on_changed, often=(LoadSample,)))
        self.destroyed.connect(kit.store.settings.listen(self._on_settings_changed))
        self.show_all()

    def show_all(self) -> None:
        """Everything as the store has it."""
        self._on_settings_changed(frozenset(("all_instruments",)))
        self._on_changed(~Changed.NOTHING, None)

    def _on_settings_changed(self, changed: frozenset[str]) -> None:
        """Words of the engine are for who asked for more; only a map that cannot be trusted is everybody's business."""
        if "all_instruments" in changed:
            for part in (self._threads, self._bytes, self._audit):
                part.setVisible(self._store.settings.current.all_instruments)
            self._show_trust()
            self._fit()

    def _on_changed(self, changed: Changed, update: Update | None) -> None:
        store = self._store
        if changed & Changed.CONTEXT:
            self._show_context()
        if changed & _MISSING:
            self._show_missing()
        if changed & _SPEED:
            self._show_speed()
        if changed & Changed.NUMBERS and store.view is not None:
            numbers = totals(store.view.snapshot)
            self._show_used(numbers.used, numbers.capacity)
            self._save.setVisible(store.view.has_report)
            self._verification = store.view.snapshot.verification
            self._show_trust()
        if changed & (Changed.CONTEXT | Changed.FEATURES | Changed.DEAD):
            self._show_audit()
        if store.dead:
            self._save.setEnabled(False)
        match update:
            case TurnEnded() if store.view is None and store.context is not None:
                self._show_used(update.stats.cells_used, store.context.n_ctx)  # the newest that are known
            case Audited():
                self._audited = tr(", audited {at}").format(at=update.at) if update.state == "verified" else ""
                self._show_trust()
            case LoadSample():
                self._show_threads(update.n_threads)

    def _on_save_clicked(self) -> None:
        """Save the differences between the map and the engine."""
        if file := ask_where_to_save(self, tr("Save the report"), "kvdesk-mismatch.json", tr("JSON (*.json)")):
            self._kit.commands.submit(SaveReport(file))

    def _show_context(self) -> None:
        context, self._audited = self._store.context, ""
        if context is None:
            self._threads.setText(tr("No context"))
            self._bytes.setText("")
            self._types.setText("")
            return
        self._show_threads(context.n_threads)
        same = context.type_k == context.type_v
        types = context.type_k if same else f"{context.type_k}/{context.type_v}"
        said = "  ·  " + tr("flash attention") if context.flash_attn else ""
        self._types.setText(f"K/V {types}{said}")
        self._show_used(1, 1)  # the widest
        self._show_used(0, 1)

    def _show_missing(self) -> None:
        """What to say where the cache is not shown."""
        if view := self._store.missing(Feature.CACHE_VIEW):
            self._show_context()
            self._verification = None
            self._save.hide()
            self._threads.setText("")
            set_tone(self._trust, "secondary")
        self._trust.setText(view)

    def _show_audit(self) -> None:
        """Whether the map can be compared with the engine, or why not."""
        store = self._store
        none = tr("There is no context to compare with.") if store.dead or store.context is None else ""
        allow(self._audit, store.missing(Feature.AUDIT) or none, _audit_tip())

    def _show_threads(self, n: int) -> None:
        """How many threads decode now: they follow the load of the machine."""
        most = self._store.context.n_threads if self._store.context is not None else n
        all_of_them = plural("1 thread", "%n threads", n)
        self._threads.setText(all_of_them if n == most else tr("{n} of {most} threads").format(n=n, most=most))

    def _show_speed(self) -> None:
        """Of the answers that are written now; each shows its own afterwards."""
        tok_s = self._store.measured.tok_s if self._store.running else None
        self._speed.setText("" if tok_s is None else tr("{n} tok/s").format(n=rate_text(tok_s)))

    def _show_used(self, used: int, capacity: int) -> None:
        if self._store.context is not None:
            self._bytes.setText(self._bytes_text(used, capacity))

    def _show_trust(self) -> None:
        if self._verification is not None:
            text, tone = verification_line(self._verification)
            is_shown = tone == "warning" or self._store.settings.current.all_instruments
            before, shown = len(self._trust.full_text), text + self._audited if is_shown else ""
            self._trust.setText(shown)
            set_tone(self._trust, tone)
            if len(shown) != before:
                self._fit()

    def _fit(self) -> None:
        """In a narrow window the types of K and V leave the room to how far the map can be trusted."""
        others = self._threads, self._speed, self._bytes, self._types, self._save, self._audit, *self._first
        seen = [part.sizeHint().width() for part in others if part is self._types or not part.isHidden()]
        needed = self._trust.fontMetrics().horizontalAdvance(self._trust.full_text) + 1
        room = self.width() - 2 * _MARGIN_PX - sum(seen) - _GAP_PX * len(seen)
        self._types.setVisible(self._store.settings.current.all_instruments and needed <= room)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:  # a part came or went, or has another text
            self._fit()
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _bytes_text(self, used: int, capacity: int) -> str:
        if self._store.context is None:
            return ""
        total = self._store.context.k_bytes + self._store.context.v_bytes
        held = megabytes(kv_used_bytes(self._store.context, used, capacity))
        return tr("KV {used} of {all} MB").format(used=held, all=megabytes(total))


def _audit_tip() -> str:
    said = tr("Compares every cell with the engine's own state")
    return f"{said}\n{calls.state_get()}"


def _number(widest: str, tip: str) -> NumberLabel:
    result = NumberLabel(widest=widest, scale="small", tone="secondary")
    result.setToolTip(tip)
    return result


def _field(text: str, tip: str) -> QLabel:
    result = label(text, tone="secondary", scale="small")
    result.setToolTip(tip)
    return result
