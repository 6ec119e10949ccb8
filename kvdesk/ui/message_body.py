"""The body of an answer: its segments one below the other, each in the widget of its kind."""

from __future__ import annotations

from markdown_it import MarkdownIt
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from kvdesk.ui.code_block import CodeBlock
from kvdesk.ui.controls import IconButton, label
from kvdesk.ui.prose_view import ProseView
from kvdesk.ui.segments import Segment, split_segments
from kvdesk.ui.theme import Look


class MessageBody(QWidget):
    """Shows Markdown and keeps the widgets of segments that did not change."""

    def __init__(self, look: Look, parser: MarkdownIt) -> None:
        super().__init__()
        self._look, self._parser = look, parser
        self._shown: list[tuple[str, ProseView | CodeBlock | ThinkFold]] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(8)

    def show_source(self, source: str) -> None:
        segments = split_segments(source)
        for i, segment in enumerate(segments):
            if i < len(self._shown) and self._shown[i][0] != segment.kind:
                self._truncate(i)
            if i == len(self._shown):
                widget = self._make(segment)
                self._shown.append((segment.kind, widget))
                self._column.addWidget(widget)
            widget = self._shown[i][1]
            if isinstance(widget, ProseView):
                widget.show_markdown(segment.text)
            else:
                widget.show_segment(segment)
        self._truncate(len(segments))

    def _make(self, segment: Segment) -> ProseView | CodeBlock | ThinkFold:
        if segment.kind == "code":
            return CodeBlock(self._look)
        if segment.kind == "think":
            return ThinkFold(self._look, self._parser)
        return ProseView(self._look, self._parser)

    def _truncate(self, length: int) -> None:
        while len(self._shown) > length:
            _, widget = self._shown.pop()
            self._column.removeWidget(widget)
            widget.hide()
            widget.deleteLater()


class ThinkFold(QWidget):
    """What the model thought before it answered: folded away until asked for."""

    def __init__(self, look: Look, parser: MarkdownIt) -> None:
        super().__init__()
        self._segment = Segment("think", "", closed=False)
        self._open = False
        self._button = IconButton(look, "chevron-right", "Show the model's thinking")
        self._button.clicked.connect(self._on_button_clicked)
        self._title = label("Thinking…", tone="secondary", scale="small")
        self._text = ProseView(look, parser, quiet=True)
        self._text.hide()
        head = QWidget()
        row = QHBoxLayout(head)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self._button)
        row.addWidget(self._title, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(head)
        column.addWidget(self._text)

    @property
    def is_open(self) -> bool:
        return self._open

    def show_segment(self, segment: Segment) -> None:
        self._segment = segment
        words = len(segment.text.split())
        self._title.setText(f"Thought, {words:,} words" if segment.closed else f"Thinking…  {words:,} words")
        if self._open:
            self._text.show_markdown(segment.text)

    @Slot()
    def _on_button_clicked(self) -> None:
        self._open = not self._open
        self._button.set_icon_name("chevron-down" if self._open else "chevron-right")
        self._button.setAccessibleName("Hide the model's thinking" if self._open else "Show the model's thinking")
        self._text.setVisible(self._open)
        if self._open:
            self._text.show_markdown(self._segment.text)
