import pytest

from kvdesk.ui.markdown.offsets import source_offsets, to_shown, to_source


@pytest.mark.parametrize(
    ("source", "shown", "word"),
    [
        ("plain words here", "plain words here", "words"),
        ("a **bold** move", "a bold move", "bold"),
        ("# Title\n\nText `code` end", "Title\nText code end", "code"),
        ("see [the page](https://example.org/a.b) now", "see the page now", "now"),
        ("- one\n- two", "one\ntwo", "two"),
        ("| x | y |\n|---|--:|\n| 1 | -2 |\n\nend", "x\ny\n1\n-2\nend", "-2"),
        ("| x | y |\n|---|--:|\n| 1 | -2 |\n\nend", "x\ny\n1\n-2\nend", "end"),
        ("| a |  | b |\n|-|-|-|\n| c | 😀 | |\n\nend", "a\n\nb\nc\n😀\n\nend", "😀"),
        ("| a |  | b |\n|-|-|-|\n| c | 😀 | |\n\nend", "a\n\nb\nc\n😀\n\nend", "end"),
        ("one\n\n---\n\ntwo", "one\n\ntwo", "two"),
        ("[a](http://host)\n\nhost", "a\nhost", "host"),
        ("Grüße an 世界 🙂 alle", "Grüße an 世界 🙂 alle", "世界"),
    ],
)
def test_a_word_is_found_there_and_back(source: str, shown: str, word: str) -> None:
    offsets = source_offsets(source, shown)
    first = shown.index(word)
    a, b = to_source(offsets, first, first + len(word))
    assert source[a:b] == word
    assert to_shown(offsets, a, b) == (first, first + len(word))


def test_offsets_never_fall_and_stay_inside() -> None:
    offsets = source_offsets("abc", "a•bxc and more")
    assert offsets == sorted(offsets)
    assert max(offsets) <= 3


def test_nothing_is_nothing() -> None:
    assert to_source([], 0, 4) == (0, 0)
    assert to_source([0, 1, 2], 2, 2) == (0, 0)
    assert to_source([0, 1, 2], 1, 99) == (1, 3)
