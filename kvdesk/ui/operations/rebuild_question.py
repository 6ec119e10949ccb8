"""Asked before a context that holds cells is rebuilt: the call, what has to be read again, and how long that takes."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from PySide6.QtWidgets import QFrame, QPushButton

from kvdesk.protocol import calls
from kvdesk.protocol.cache import ContextPreview, PreviewContext
from kvdesk.quantities import seconds_text, tokens_text
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label, push_button
from kvdesk.ui.widgets.kit import Kit

_NAMED: Final = 3  # conversations; the others are counted
_CONVERT: Final = (
    marked("Convert K and V"),
    marked("All cells are rewritten in the new types by llama.cpp's own quantizers: nothing is read again"),
)
_CHOICES: Final = (
    (
        "state",
        marked("Keep their states"),
        marked("Their K and V are saved and put back into the new context: nothing is read again"),
    ),
    ("tokens", marked("Read them again now"), marked("They are prefilled one after another, with progress and Cancel")),
    ("nothing", marked("Read them when needed"), marked("Each conversation is prefilled at its next turn")),
)


class RebuildQuestion(QFrame):
    """Under the button that was pressed. Hidden until `ask`; the answer is a rebuild, or nothing."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._kit = kit
        self.setProperty("card", "ask")
        self.setAccessibleName(tr("Rebuild the context?"))
        self._settings: ContextSettings | None = None
        self._what = label("", weight="strong", scale="small", wrap=True)
        self._call = label(calls.new_context(), family="mono", tone="secondary", wrap=True)
        self._cost = label("", scale="small", wrap=True)
        self._buttons: dict[str, QPushButton] = {}
        buttons = boxes.grid(8, 8)
        for place, (keep, text, tip) in enumerate(
            (*_CHOICES, ("", marked("Cancel"), marked("Everything stays as it is")))
        ):
            button = push_button(tr(text), scale="small", tip=tr(tip), clicked=partial(self._on_clicked, keep))
            buttons.addWidget(button, place // 2, place % 2)
            self._buttons[keep] = button
        boxes.column(self._what, self._call, self._cost, buttons, on=self, margins=(12, 8, 12, 8), spacing=6)
        self.hide()

    def ask(self, settings: ContextSettings, n_cells: int, held: Sequence[tuple[str, int]]) -> None:
        """Ask. `n_cells`: in use; `held`: title and cells of every conversation in the cache."""
        self._settings = settings
        named = [tr("{n} of “{title}”").format(n=f"{n:,}", title=title) for title, n in held[:_NAMED]]
        if more := held[_NAMED:]:
            named.append(tr("{n_cells} of {n} more").format(n_cells=f"{sum(n for _, n in more):,}", n=len(more)))
        together = tr("Rebuilding removes all {n} cells in use from the cache.").format(n=f"{n_cells:,}")
        if named:
            together = tr("Rebuilding removes all {n} cells in use from the cache: {each}.").format(
                n=f"{n_cells:,}", each=tr(", ").join(named)
            )
        self._what.setText(together + " " + tr("The texts stay."))
        self._cost.setText(tr("How long reading them again takes is being estimated …"))
        self._buttons["state"].setEnabled(False)
        self.show()
        self._buttons["tokens"].setFocus()
        self._kit.commands.submit(PreviewContext(settings))

    def show_preview(self, preview: ContextPreview) -> None:
        """Show the cost that the engine gave; ignored when it is that of other settings."""
        if preview.settings != self._settings:
            return
        seconds = preview.seconds
        measured = (
            ""
            if seconds is None
            else tr("takes about {seconds} s at the measured speed").format(seconds=f"{seconds:,.1f}")
        )
        how_long = measured or tr("takes a time that has not been measured yet")
        converts = preview.convert_seconds
        kept = tr("Where their states are kept, nothing is read again.")
        if converts is not None:
            kept = tr("Converting K and V takes about {time}, and nothing leaves the cache.")
            kept = kept.format(time=seconds_text(converts))
        states = kept if preview.carries_state else preview.why_not_carried
        self._cost.setText(
            tr("Reading {tokens} again {how_long}. {states}")
            .format(tokens=tokens_text(preview.n_tokens), how_long=how_long, states=states)
            .rstrip()
        )
        words, tip = _CHOICES[0][1:] if converts is None else _CONVERT
        self._buttons["state"].setText(tr(words))
        self._buttons["state"].setEnabled(preview.carries_state)
        self._buttons["state"].setToolTip(preview.why_not_carried or tr(tip))

    def forget(self) -> None:
        """There is another context, or none: the question is no more."""
        self._settings = None
        self.hide()

    def refuse(self) -> None:
        """Everything stays as it is, where it is asked."""
        if not self.isHidden():
            self._on_clicked("")

    def _on_clicked(self, keep: str) -> None:
        settings = self._settings
        self.forget()
        self._kit.actions.run("chat.write")
        if keep and settings is not None:
            self._kit.commands.rebuild(settings, keep)
