import re
from colorsys import rgb_to_hls
from itertools import product

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QCheckBox, QRadioButton, QStyle, QStyleOptionButton, QWidget
from pytestqt.qtbot import QtBot

from kvdesk.settings import ThemeChoice
from kvdesk.ui.map.colours import N_MESSAGE_COLOURS, N_TOOL_COLOURS, ColourBy, group_colours
from kvdesk.ui.widgets.style.colours import DARK, LIGHT, Colours
from kvdesk.ui.widgets.style.stylesheet import style_sheet
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel import palette


@pytest.mark.parametrize("colours", [DARK, LIGHT])
def test_text_can_be_read(colours: Colours) -> None:
    pairs = product(("text", "secondary", "danger", "warning", "good"), ("window", "panel", "raised"))
    assert [
        pair for pair in pairs if palette.contrast(getattr(colours, pair[0]), getattr(colours, pair[1])) < 4.5
    ] == []


@pytest.mark.parametrize("colours", [DARK, LIGHT])
def test_the_primary_button_can_be_read(colours: Colours) -> None:
    assert palette.contrast(colours.accent, colours.accent_text) >= 4.5


@pytest.mark.parametrize("colours", [DARK, LIGHT])
def test_every_conversation_stands_out_from_free_cells(colours: Colours) -> None:
    for i in range(palette.N_COLOURS):
        assert palette.contrast(palette.conversation_colour(i, colours.dark), colours.cell_span) >= 1.6


@pytest.mark.parametrize("colours", [DARK, LIGHT])
def test_the_schemas_of_tools_have_a_hue_that_no_message_has(colours: Colours) -> None:
    def hue(colour: str) -> float:
        return rgb_to_hls(*(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)))[0]

    _, *groups = group_colours(ColourBy.MESSAGE, colours)
    messages, tools = groups[: N_MESSAGE_COLOURS - 1], groups[N_MESSAGE_COLOURS:]  # the last message's has no hue
    assert len(set(tools)) == N_TOOL_COLOURS
    for tool in tools:
        assert palette.contrast(tool, colours.cell_span) >= 1.6
        assert all(1 / 12 < abs(hue(tool) - hue(one)) < 11 / 12 for one in messages)


@pytest.mark.parametrize("kind", [QCheckBox, QRadioButton])
@pytest.mark.parametrize("is_on", [False, True])
def test_what_is_disabled_looks_so_whether_it_is_on_or_off(
    theme: Theme,  # noqa: ARG001
    qtbot: QtBot,
    kind: type[QCheckBox | QRadioButton],
    is_on: bool,
) -> None:
    button = kind()
    button.setText("Serve")
    qtbot.addWidget(button)
    button.setCheckable(True)
    button.setChecked(is_on)
    enabled = button.grab().toImage()
    button.setEnabled(False)
    disabled = button.grab().toImage()
    frame = button.style().subElementRect(QStyle.SubElement.SE_CheckBoxIndicator, QStyleOptionButton(), button)
    box = frame.adjusted(0, 0, 2, button.height())
    assert enabled.copy(box) != disabled.copy(box), "the box"
    assert enabled.copy(box.right() + 4, 0, 60, 40) != disabled.copy(box.right() + 4, 0, 60, 40), "the words"


def test_colours_repeat() -> None:
    assert palette.conversation_colour(palette.N_COLOURS + 1, True) == palette.conversation_colour(1, True)


def test_the_theme_switches_live(theme: Theme, qtbot: QtBot) -> None:
    assert theme.colours is DARK
    with qtbot.waitSignal(theme.changed):
        theme.set_theme(ThemeChoice.LIGHT)
    assert theme.colours is LIGHT


class Styled(QWidget):
    """Counts how often it is styled."""

    times = 0

    def changeEvent(self, event: QEvent) -> None:
        self.times += event.type() == QEvent.Type.StyleChange
        super().changeEvent(event)


def test_only_another_theme_styles_the_widgets_anew(theme: Theme, qapp: QApplication, qtbot: QtBot) -> None:
    widget = Styled()
    qtbot.addWidget(widget)
    widget.show()
    qtbot.waitExposed(widget)
    before = widget.times
    theme.set_theme(ThemeChoice.DARK)
    assert Theme(qapp, theme=ThemeChoice.DARK).colours is DARK
    assert widget.times == before
    theme.set_theme(ThemeChoice.LIGHT)
    assert widget.times > before


@pytest.mark.parametrize("zoom", [100, 150, 200])
def test_a_box_is_as_large_with_its_tick_as_without(zoom: int, theme: Theme, qtbot: QtBot) -> None:
    theme.set_size(zoom)
    box = QCheckBox("Serve other programs")
    qtbot.addWidget(box)
    rects = []
    for checked in (False, True):
        box.setChecked(checked)
        option = QStyleOptionButton()
        box.initStyleOption(option)
        rects.append(box.style().subElementRect(QStyle.SubElement.SE_CheckBoxIndicator, option, box))
    assert rects[0] == rects[1]
    assert rects[0].width() >= theme.px(12)


@pytest.mark.parametrize("scale", [0.5, 1.0, 1.1, 1.25, 1.5, 2.0])
def test_radio_buttons_are_round_at_every_size(scale: float) -> None:
    """Qt draws one with corners if its radius is more than half of it."""
    sheet = style_sheet(DARK, 14, 12, ["Mono"], scale)
    rules = re.findall(r"QRadioButton::indicator(?::checked)? \{([^}]*)\}", sheet)
    assert len(rules) == 2
    for rule in rules:
        width, border, radius = (
            int(re.findall(rf"{name}: (\d+)px", rule)[0]) for name in ("width", "border", "border-radius")
        )
        assert width + 2 * border - 1 <= 2 * radius <= width + 2 * border
