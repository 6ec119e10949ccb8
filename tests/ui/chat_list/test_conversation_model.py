from PySide6.QtGui import QFontMetrics

from kvdesk.ui.widgets.controls import two_lines
from kvdesk.ui.widgets.style.theme import Theme


def test_a_title_has_at_most_two_lines_broken_between_words(theme: Theme) -> None:
    metrics = QFontMetrics(theme.text)
    room = metrics.horizontalAdvance("Write three")
    assert two_lines("Caches", metrics, room) == ("Caches",)
    assert two_lines("Write three", metrics, room) == ("Write three",)
    first, second = two_lines("Write three sentences about a lighthouse", metrics, room)
    assert first == "Write three"
    assert second.startswith("sent")
    assert second.endswith("…")
    assert metrics.horizontalAdvance(second) <= room
    (only,) = two_lines("Donaudampfschifffahrtsgesellschaft", metrics, room)
    assert only.endswith("…")
    assert len(two_lines("Donaudampfschifffahrtsgesellschaft on the river", metrics, room)) == 1


def test_a_chinese_title_breaks_between_any_two_signs(theme: Theme) -> None:
    metrics = QFontMetrics(theme.text)
    room = metrics.horizontalAdvance("天空为什么")
    assert two_lines("天空为什么是蓝色的", metrics, room) == ("天空为什么", "是蓝色的")
    first, second = two_lines("😀天空为什么是蓝色的？请用两句话回答。", metrics, room)
    assert first.startswith("😀天空")
    assert second.endswith("…")
