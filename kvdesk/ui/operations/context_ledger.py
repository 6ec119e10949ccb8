"""The memory and time that a context with other settings would cost, and what it keeps of conversations."""

from typing import Final

from PySide6.QtWidgets import QFrame, QLabel

from kvdesk.protocol.cache import ContextInfo, ContextPreview, PreviewContext
from kvdesk.quantities import cells_text, rate_text, seconds_text, tokens_text
from kvdesk.session.commands import Commands
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.controls import label, set_tone
from kvdesk.ui.widgets.timers import once
from kvdesk.viewmodel.cells.readout import megabytes

_ASK_MS: Final = 200  # after the last keystroke
_KEEPS: Final = {
    "nothing": marked("Prefill at their next message"),
    "tokens": marked("Prefill again now"),
    "state": marked("Carry over their saved state"),
}
_CONVERT: Final = marked("Convert their K and V")
_ROWS: Final = ("K", "V", marked("recurrent"), marked("compute"), marked("in all"), marked("decode"))


class ContextLedger(QFrame):
    """Asks for a preview shortly after the settings have changed."""

    def __init__(self, commands: Commands) -> None:
        super().__init__()
        self._commands = commands
        self.setProperty("card", "effect")
        self._wanted: ContextSettings | None = None
        self._now: ContextInfo | None = None
        self._preview: ContextPreview | None = None
        self._values: dict[str, tuple[QLabel, QLabel]] = {}
        self._keep = Choice(scale="small", name=tr("What happens to the conversations in the cache"))
        for keep, words in _KEEPS.items():
            self._keep.addItem(tr(words), keep)
        self._keep.currentIndexChanged.connect(self._show_cost)
        self._cost = label("", tone="secondary", scale="small", wrap=True)
        grid = boxes.grid(16, 4, 0, 1, 0, 1)
        for i, name in enumerate(_ROWS):
            row, column = i % 3, 2 * (i // 3)
            caption, value = label(tr(name), tone="secondary", scale="small"), label("…", family="mono")
            self._values[name] = caption, value
            grid.addWidget(caption, row, column)
            grid.addWidget(value, row, column + 1)
        choice = boxes.row(label(tr("Conversations in the cache"), scale="small"), (self._keep, 1), spacing=8)
        boxes.column(grid, choice, self._cost, on=self, margins=(12, 8, 12, 8), spacing=8)
        self._asking = once(self, _ASK_MS, self._on_asking)

    @property
    def keep(self) -> str:
        """What is kept of the conversations: "nothing", "tokens" or "state"."""
        return str(self._keep.currentData())

    @property
    def refused(self) -> str:
        """Why the context that was asked about last cannot be made."""
        return self._preview.refused if self._preview else ""

    def set_keep(self, keep: str) -> None:
        self._keep.setCurrentIndex(self._keep.findData(keep))

    def show_context(self, now: ContextInfo | None) -> None:
        """The context there is, to compare with."""
        self._now = now

    def ask(self, settings: ContextSettings) -> None:
        """The settings have changed: ask what they would take, in a moment."""
        if settings != self._wanted:
            self._wanted, self._preview = settings, None
            self._asking.start()
            for _, value in self._values.values():
                value.setText("…")
            self._cost.setText("")

    def show_preview(self, preview: ContextPreview) -> None:
        """Show the answer of the engine; ignored when other settings are asked for since."""
        if preview.settings != self._wanted:
            return
        self._preview = preview
        now = self._now
        total = preview.k_bytes + preview.v_bytes + preview.recurrent_bytes + preview.compute_bytes
        texts = {
            "K": _change(now.k_bytes if now else None, preview.k_bytes),
            "V": _change(now.v_bytes if now else None, preview.v_bytes),
            "recurrent": _states(preview),
            "compute": tr("{n} MB, estimated").format(n=megabytes(preview.compute_bytes)),
            "in all": tr("{total} of {available} MB free").format(
                total=megabytes(total), available=megabytes(preview.available_bytes)
            ),
            "decode": tr("about {n} tok/s").format(n=rate_text(preview.tok_s))
            if preview.tok_s
            else tr("not measured yet"),
        }
        for name, text in texts.items():
            caption, value = self._values[name]
            value.setText(text)
            shown = name != "recurrent" or preview.recurrent_bytes > 0
            caption.setVisible(shown)
            value.setVisible(shown)
        set_tone(self._values["in all"][1], "danger" if total > preview.available_bytes else "")
        item = self._keep.model().item(self._keep.findData("state"))  # type: ignore[attr-defined]
        words = _CONVERT if preview.convert_seconds is not None else _KEEPS["state"]
        item.setText(tr(words))
        item.setEnabled(preview.carries_state)
        item.setToolTip(preview.why_not_carried)
        if not preview.carries_state and self.keep == "state":
            self.set_keep("tokens")
        self._show_cost()

    def _on_asking(self) -> None:
        if self._wanted is not None:
            self._commands.submit(PreviewContext(self._wanted))

    def _show_cost(self) -> None:
        preview = self._preview
        if preview is None:
            return
        set_tone(self._cost, "danger" if preview.refused else "secondary")
        n = tokens_text(preview.n_tokens)
        if preview.refused:
            words = preview.refused
        elif not (preview.n_tokens or preview.n_cells):
            words = tr("No conversation is in the cache: nothing is prefilled again.")
        elif self.keep == "tokens":
            time = (
                tr(" in about {time}").format(time=seconds_text(preview.seconds)) if preview.seconds is not None else ""
            )
            words = tr("Prefilled again: {n}{time}; it can be cancelled.").format(n=n, time=time)
        elif self.keep == "state" and preview.convert_seconds is not None:
            time = seconds_text(preview.convert_seconds)
            words = tr("Converted in about {time}: {cells}. Nothing is computed, and it can be undone.").format(
                cells=cells_text(preview.n_cells), time=time
            )
        elif self.keep == "state":
            words = tr("Carried over: {n}. Nothing is computed.").format(n=n)
        else:
            leaving = cells_text(preview.n_cells) if preview.n_cells else n
            words = tr("Removed from the cache: {n}. Each chat is prefilled again at its next message.").format(
                n=leaving
            )
        lost = self.keep == "tokens" or (self.keep == "state" and preview.convert_seconds is None)
        if lost and preview.n_cells > preview.n_tokens and not preview.refused:
            words += " " + tr("Removed from the cache: {n}.").format(n=cells_text(preview.n_cells))
        if preview.why_not_carried and not preview.refused:
            words += tr(" Saved state cannot be carried over: {why}").format(why=preview.why_not_carried)
        self._cost.setText(words)


def _states(preview: ContextPreview) -> str:
    if not preview.n_earlier:
        return f"{megabytes(preview.recurrent_bytes)} MB"
    return tr("{n} MB, of which {n_earlier} earlier states {earlier}").format(
        n=megabytes(preview.recurrent_bytes), n_earlier=preview.n_earlier, earlier=megabytes(preview.earlier_bytes)
    )


def _change(now: int | None, then: int) -> str:
    if now is None or now == then:
        return f"{megabytes(then)} MB"
    return f"{megabytes(now)} → {megabytes(then)} MB"
