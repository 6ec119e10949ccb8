"""The parts of pages that follow from declarations are those of the declarations as they are now."""

from pathlib import Path

import pytest
import reference

from kvdesk.translation import installed


@pytest.mark.parametrize("page", reference.pages(), ids=lambda page: str(page.relative_to(reference.DOCS)))
def test_a_page_is_as_its_declarations(page: Path) -> None:
    assert reference.made(page) == page.read_text(encoding="utf-8"), "run `make reference`, and commit the pages"
    assert installed() == "en"


def test_every_part_is_on_a_page_and_has_rows() -> None:
    texts = [page.read_text(encoding="utf-8") for page in reference.pages()]
    found = {part[2]: part[0] for text in texts for part in reference.BLOCK.finditer(text)}
    assert found.keys() == reference.PARTS.keys()
    assert {name: part for name, part in found.items() if part.count("\n| ") < 10} == {}


def test_a_page_that_is_older_is_listed_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "tuned.md"
    page.write_text("Before.\n\n<!-- made: tuned -->\n| `TILE` | 65 |\n<!-- end -->\n\nAfter.\n", encoding="utf-8")
    monkeypatch.setattr(reference, "DOCS", tmp_path)
    monkeypatch.setattr(reference, "ROOT", tmp_path)
    assert reference.main(["--check"]) == 1
    assert "| 65 |" in page.read_text(encoding="utf-8")
    assert reference.main([]) == 0
    assert capsys.readouterr().out == "tuned.md\ntuned.md\n"
    text = page.read_text(encoding="utf-8")
    assert text.startswith("Before.\n")
    assert text.endswith("<!-- end -->\n\nAfter.\n")
    assert "| `TILE` | 64 | tokens |" in text
    assert reference.main(["--check"]) == 0
