"""The one line at the bottom: threads, speed, K/V bytes, who is served, and how far the map can be trusted."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QToolButton, QWidget

from kvdesk.cache.snapshot import Verification
from kvdesk.protocol import calls
from kvdesk.protocol.cache import ContextInfo
from kvdesk.translation import tr
from kvdesk.ui.widgets.controls import ElidedButton, ElidedLabel, NumberLabel, label, set_tone
from kvdesk.viewmodel.readout import kv_used_bytes, megabytes, verification_line


class StatusBar(QWidget):
    """Fields of fixed width, so that nothing jumps while the numbers change."""

    audit_clicked = Signal()
    save_clicked = Signal()
    serving_clicked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("pane", "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._context: ContextInfo | None = None
        self._verification: Verification | None = None
        self._audited = ""
        self._threads = _field(tr("No context"), tr("Threads used to decode"))
        self._speed = _number(tr("{n} tok/s").format(n="8,888"), tr("Decode speed of the answers that are written now"))
        self._bytes = _number("", tr("Memory of K and V: used, of what is allocated"))
        self._types = _field("", tr("Data types of K and V, and flash attention"))
        self._trust = ElidedLabel()
        self._trust.setProperty("scale", "small")
        self._trust.setProperty("tone", "secondary")
        self._trust.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 4, 12, 4)
        row.setSpacing(16)
        for widget in (self._threads, self._speed, self._bytes, self._types):
            row.addWidget(widget)
        self._serving = ElidedButton()
        self._serving.setObjectName("servingChip")
        for name, value in (("chip", True), ("scale", "tiny")):
            self._serving.setProperty(name, value)
        self._serving.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._serving.setAccessibleDescription(tr("Opens “Serve on this computer”"))
        self._serving.clicked.connect(self.serving_clicked)
        self._serving.setText(tr("Serve on this computer"))
        self._serving.hide()
        row.insertWidget(0, self._serving)  # where it stays, whatever the engine says
        row.addWidget(self._trust, 1)
        self._save = _action(tr("Save report…"), tr("Saves the differences between the map and the engine as JSON"))
        self._save.clicked.connect(self.save_clicked)
        self._save.hide()
        self._audit = _action(tr("Audit"), _audit_tip())
        self._audit.clicked.connect(self.audit_clicked)
        self._audit.setEnabled(False)
        row.addWidget(self._save)
        row.addWidget(self._audit)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def show_engine(self, shown: bool) -> None:
        """Whether threads, types and memory of K and V are shown: words of the engine, for who asked for more."""
        for part in (self._threads, self._bytes, self._types):
            part.setVisible(shown)

    @property
    def text(self) -> str:
        """Everything on the line."""
        parts = (self._threads, self._speed, self._bytes, self._types)
        shown = [part.text() for part in parts if part.text() and not part.isHidden()]
        return "  ·  ".join([*shown, self._trust.full_text])

    def show_context(self, context: ContextInfo | None) -> None:
        self._context = context
        self._audited = ""
        self._audit.setEnabled(context is not None)
        if context is None:
            self._threads.setText(tr("No context"))
            self._bytes.setText("")
            self._types.setText("")
            return
        self.show_threads(context.n_threads)
        same = context.type_k == context.type_v
        types = context.type_k if same else f"{context.type_k}/{context.type_v}"
        said = "  ·  " + tr("flash attention") if context.flash_attn else ""
        self._types.setText(f"K/V {types}{said}")
        self.show_used(1, 1)  # the widest
        self.show_used(0, 1)

    def show_missing(self, view: str, audit: str) -> None:
        """What to say where the cache is not shown, and where it cannot be audited; empty where it is, and can."""
        if view:
            self.show_context(None)
            self._verification = None
            self._save.hide()
            self._threads.setText("")
            set_tone(self._trust, "secondary")
        self._trust.setText(view)
        self._audit.setToolTip(audit or _audit_tip())

    def set_dead(self) -> None:
        """The engine has stopped for good: nothing can be compared with it."""
        self._audit.setEnabled(False)
        self._save.setEnabled(False)

    def show_serving(self, address: str, n_running: int) -> None:
        """Other programs are served there, so many requests of them now; an empty address: none are."""
        self._serving.setVisible(bool(address))
        if not address:
            return
        where = address.removeprefix("http://").removesuffix("/v1")
        if n_running:
            said = tr("Serving {address} · {n} running").format(address=where, n=f"{n_running:,}")
        else:
            said = tr("Serving {address}").format(address=where)
        self._serving.setText(said)
        self._serving.setToolTip(
            tr("Other programs use this model at {address}. Click for their requests.").format(address=address)
        )

    def show_threads(self, n: int) -> None:
        """How many threads decode now: they follow the load of the machine."""
        most = self._context.n_threads if self._context is not None else n
        all_of_them = tr("1 thread") if n == 1 else tr("{n} threads").format(n=n)
        self._threads.setText(all_of_them if n == most else tr("{n} of {most} threads").format(n=n, most=most))

    def show_speed(self, tok_s: float | None) -> None:
        self._speed.setText("" if tok_s is None else tr("{n} tok/s").format(n=f"{tok_s:,.0f}"))

    def show_used(self, used: int, capacity: int) -> None:
        if self._context is not None:
            self._bytes.setText(self._bytes_text(used, capacity))

    def show_audit(self, at: str, *, agreed: bool) -> None:
        """Every cell was compared at this time of day: where all agreed, that is said from now on."""
        self._audited = tr(", audited {at}").format(at=at) if agreed else ""
        self._show_trust()

    def show_verification(self, verification: Verification, has_report: bool) -> None:
        self._save.setVisible(has_report)
        self._verification = verification
        self._show_trust()

    def _show_trust(self) -> None:
        if self._verification is not None:
            text, tone = verification_line(self._verification)
            self._trust.setText(text + self._audited)
            set_tone(self._trust, tone)

    def _bytes_text(self, used: int, capacity: int) -> str:
        if self._context is None:
            return ""
        total = self._context.k_bytes + self._context.v_bytes
        held = megabytes(kv_used_bytes(self._context, used, capacity))
        return tr("KV {used} of {all} MB").format(used=held, all=megabytes(total))


def _audit_tip() -> str:
    said = tr("Compares every cell with the engine's own state")
    return f"{said}\n{calls.state_get()}"


def _action(text: str, tip: str) -> QToolButton:
    button = QToolButton()
    button.setText(text)
    button.setToolTip(tip)
    button.setProperty("scale", "small")
    button.setProperty("link", "true")
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return button


def _number(widest: str, tip: str) -> NumberLabel:
    result = NumberLabel(widest=widest)
    result.setProperty("scale", "small")
    result.setProperty("tone", "secondary")
    result.setToolTip(tip)
    return result


def _field(text: str, tip: str) -> QLabel:
    result = label(text, tone="secondary", scale="small")
    result.setToolTip(tip)
    return result
