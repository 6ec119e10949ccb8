"""Over the messages, while answers are coloured by surprise: what the colours mean."""

from kvdesk.translation import tr
from kvdesk.ui.widgets.colour_bar import ColourBar
from kvdesk.ui.widgets.controls import IconButton, plain_tip
from kvdesk.ui.widgets.kit import Kit
from kvdesk.viewmodel.chat.token_surprise import LEVEL_NAMES, colours_of


class SurpriseBar(ColourBar):
    """Hidden while no token has a colour."""

    def __init__(self, kit: Kit) -> None:
        without, tip = tr("No token probabilities"), tr("New answers are no longer kept with them")
        super().__init__(IconButton(kit.theme, "close", without, tip, clicked=kit.act("view.probabilities")))
        self._theme = kit.theme
        self.set_lead(tr("How likely each token was:"))
        names = tr(", ").join(map(tr, LEVEL_NAMES))
        self.setAccessibleName(
            tr("Legend: how likely each token was, from no colour to the strongest: {names}").format(names=names)
        )
        tip = tr(
            "The probability before sampling: {names}. A click on a token shows what else was likely there. Answers "
            "have colours if they were written while this was on"
        ).format(names=names)
        self.setToolTip(plain_tip(tip))
        self.setAccessibleDescription(tip)
        kit.theme.follow(self._show_colours)

    def _show_colours(self) -> None:
        colours = colours_of(dark=self._theme.colours.dark)
        self.show_swatches([(tr(name), colour) for name, colour in zip(LEVEL_NAMES, colours, strict=True)])
