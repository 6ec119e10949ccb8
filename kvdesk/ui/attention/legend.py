"""Over the messages, while their words have the colours of attention: what the colours mean."""

from typing import Final

from kvdesk.session import Changed
from kvdesk.translation import tr
from kvdesk.ui.messages.attention_words import sink_colour, spot_colour, word_colours
from kvdesk.ui.widgets.colour_bar import ColourBar
from kvdesk.ui.widgets.controls import IconButton, plain_tip
from kvdesk.ui.widgets.kit import Kit
from kvdesk.viewmodel.cells.attention import limit

_ROOTS: Final = (0.2, 0.5, 1.0)  # of the levels that are shown


class AttentionLegend(ColourBar):
    """Hidden while no word has a colour of attention."""

    def __init__(self, kit: Kit) -> None:
        name, tip = tr("No colours of attention"), tr("Shows the page Cache instead")
        super().__init__(IconButton(kit.theme, "close", name, tip, clicked=kit.act("view.cache")))
        self._theme, self._store = kit.theme, kit.store
        kit.theme.changed.connect(self._show)
        self.destroyed.connect(kit.store.listen(lambda *_: self._show(), Changed.ATTENTION))

    def _show(self) -> None:
        looking, colours = self._store.attention, self._theme.colours
        shown = looking.shown
        self.setVisible(looking.is_open and shown is not None)
        if shown is None:
            return
        self.set_lead(tr("Attention to each word:"))
        steps = word_colours(colours)
        levels = [(limit(shown.most * root**2), steps[round(root * (len(steps) - 1))]) for root in _ROOTS]
        sink = [(tr("sink"), sink_colour(colours))] if shown.sinks.any() else []
        spot = [(tr("looked from"), spot_colour(colours))] if shown.spot is not None else []
        self.show_swatches([*levels, *sink, *spot])
        names = tr(", ").join(name for name, _ in (*levels, *sink, *spot))
        self.setAccessibleName(
            tr("Legend: attention to each word, the strongest colour last: {names}").format(names=names)
        )
        self.setToolTip(plain_tip(tr("{names}. A click on a word looks from it").format(names=names)))
