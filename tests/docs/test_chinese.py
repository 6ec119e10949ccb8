"""Documents in Chinese: what they lack of the English ones is told, and may wait until a release."""

from collections.abc import Callable

import pytest
import translated_docs
from translated_docs import PAIRS, differences

from tests.places import ROOT

ENGLISH = """# Title
## Part
![A map](images/map.png)
| a | b |
```sh
# no heading
make run
```
"""


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (("## Part\n", ""), "its 1 headings are not the 2 of the English"),
        (("make run", "make test"), "it lacks `make run`\nit still has `make test`"),
        (("map.png", "zh-cells.png"), "its pictures are ['cells'], not ['map']"),
        (("| a | b |\n", ""), "its tables have 0 rows, not 1"),
        (("images/map.png", "images/zh-map.png"), ""),
        (("# no heading\n", ""), ""),
    ],
)
def test_a_difference_is_told(change: tuple[str, str], difference: str) -> None:
    assert "\n".join(differences(ENGLISH, ENGLISH.replace(*change))) == difference


def test_a_page_may_wait_for_its_translation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PAIRS, "docs/README.md", "docs/zh/none.md")
    assert "docs/zh/none.md is behind docs/README.md: it does not exist" in translated_docs.behind()


def test_what_is_behind_is_shown_at_the_end_of_the_run(record_property: Callable[[str, object], None]) -> None:
    for sentence in (behind := translated_docs.behind()):
        record_property("waits", sentence)
    assert all(sentence.startswith("docs/zh/") for sentence in behind)


def test_they_lead_to_each_other() -> None:
    translated = [path for path in PAIRS if (ROOT / PAIRS[path]).exists()]
    assert [path for path in translated if "[简体中文](" not in text(path)] == []
    assert [path for path in translated if "[English](" not in text(PAIRS[path])] == []
