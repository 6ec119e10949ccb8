from __future__ import annotations

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from kvdesk.ui.markdown.text_chunks import PIECE_CHARS
from kvdesk.ui.messages.message_body import MessageBody
from kvdesk.ui.widgets.theme import Theme


@pytest.mark.parametrize(("rest", "is_folded"), [(250, False), (3_000, True)])
def test_a_little_more_than_a_piece_is_not_folded(theme: Theme, qtbot: QtBot, rest: int, is_folded: bool) -> None:
    body = MessageBody(theme)
    qtbot.addWidget(body)
    text = "word " * ((PIECE_CHARS + rest) // 5)
    body.show_source(text)
    folds = [button for button in body.findChildren(QPushButton) if not button.isHidden()]
    assert any("Show more" in button.text() for button in folds) == is_folded
