"""The colours of windows, texts and controls, light and dark; those of data are in `viewmodel.palette`. No Qt."""

from typing import Final

from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class Colours:
    """The neutral colours of one theme, one accent, and three states. All #rrggbb."""

    dark: bool
    window: str  # behind the text one reads
    panel: str  # sidebar, inspector, status bar
    raised: str  # fields, buttons, the composer
    hover: str
    line: str
    text: str
    secondary: str
    accent: str
    accent_text: str
    selection: str
    danger: str
    warning: str
    good: str
    cell_free: str  # beyond what attention walks over
    cell_span: str  # free, but attention walks over it


DARK: Final = Colours(
    dark=True,
    window="#16181d",
    panel="#1b1e24",
    raised="#242830",
    hover="#2b303a",
    line="#2c313b",
    text="#e6e6e6",
    secondary="#9da1a9",
    accent="#3868d9",
    accent_text="#ffffff",
    selection="#2f4a85",
    danger="#ff9185",
    warning="#e9b44c",
    good="#7cc8a2",
    cell_free="#22262d",
    cell_span="#323843",
)
LIGHT: Final = Colours(
    dark=False,
    window="#fbfbfa",
    panel="#f3f3f1",
    raised="#ffffff",
    hover="#e8e8e5",
    line="#dcdcd8",
    text="#1d1f23",
    secondary="#5d6169",
    accent="#2c5fd0",
    accent_text="#ffffff",
    selection="#c4d6fb",
    danger="#b3261e",
    warning="#855600",
    good="#1f6d47",
    cell_free="#e6e6e2",
    cell_span="#d3d3ce",
)
