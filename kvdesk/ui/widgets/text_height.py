"""How high the text of a QPlainTextEdit is, as it lays its lines out."""

from math import ceil

from PySide6.QtWidgets import QPlainTextEdit


def text_height(edit: QPlainTextEdit, most: int = 0) -> int:
    """Height in px of the first `most` lines, wrapped ones counted; 0: of all.

    The layout rounds each line up and takes the fonts that its characters need, so it is not `most` times the line
    spacing of the font.
    """
    height, n_lines, block = 0.0, 0, edit.document().firstBlock()
    while block.isValid() and not 0 < most <= n_lines:
        edit.blockBoundingRect(block)  # lays it out
        lines = block.layout()
        count = max(lines.lineCount(), 1)
        shown = min(count, most - n_lines) if most else count
        height += lines.boundingRect().height() * shown / count
        n_lines += count
        block = block.next()
    return ceil(height)
