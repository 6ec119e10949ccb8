"""Tooltips show what comes from elsewhere as text: a title with tags must not make Qt look for a picture."""

import pytest
from pytestqt.qtbot import QtBot

from kvdesk.ui.widgets.controls import ElidedLabel, plain_tip

HOSTILE = '<img src="//elsewhere/share/x.png">title'


@pytest.mark.usefixtures("qapp")
def test_tags_of_a_long_title_are_shown_and_not_followed(qtbot: QtBot) -> None:
    label = ElidedLabel(HOSTILE)
    qtbot.addWidget(label)
    label.resize(40, 20)
    label.show()
    assert "<img" not in label.toolTip()
    assert "&lt;img src=" in label.toolTip()


def test_text_without_tags_stays_as_it_is() -> None:
    assert plain_tip("a & b\nc") == "a & b\nc"
    assert plain_tip("a < b\nc") == "<qt>a &lt; b<br>c</qt>"
