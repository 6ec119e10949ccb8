import pytest
from PySide6.QtWidgets import QPlainTextEdit, QPushButton, QTextEdit
from pytestqt.qtbot import QtBot

from kvdesk.ui.markdown.text_chunks import PIECE_CHARS
from kvdesk.ui.messages.message_body import MessageBody
from kvdesk.ui.widgets.style.theme import Theme


@pytest.mark.parametrize(("rest", "is_folded"), [(250, False), (3_000, True)])
def test_a_little_more_than_a_piece_is_not_folded(theme: Theme, qtbot: QtBot, rest: int, is_folded: bool) -> None:
    body = MessageBody(theme)
    qtbot.addWidget(body)
    text = "word " * ((PIECE_CHARS + rest) // 5)
    body.show_source(text)
    folds = [button for button in body.findChildren(QPushButton) if not button.isHidden()]
    assert any("Show more" in button.text() for button in folds) == is_folded


ANSWER = """Smile 😀 at the sea.

| a | b |
|---|---|
| 😀 | tide |

```python
# 😀 comment
value = lighthouse(1)
```

The end 😀 of it.
"""


@pytest.mark.parametrize("word", ["sea", "tide", "comment", "lighthouse", "end", "it"])
def test_a_word_is_marked_wherever_it_stands(theme: Theme, qtbot: QtBot, word: str) -> None:
    """In prose, tables and programs, also behind characters that Qt counts twice."""
    body = MessageBody(theme)
    qtbot.addWidget(body)
    body.show_source(ANSWER)
    first = ANSWER.rindex(word)

    views: list[QTextEdit | QPlainTextEdit] = [*body.findChildren(QTextEdit), *body.findChildren(QPlainTextEdit)]

    def marked() -> list[str]:
        return [one.cursor.selectedText() for view in views for one in view.extraSelections()]

    body.point_at(first, first + len(word))
    assert marked() == [word]
    body.highlight(first, first + len(word))
    assert marked() == [word, word]
    body.point_at(0, 0)
    body.highlight(0, 0)
    assert marked() == []
