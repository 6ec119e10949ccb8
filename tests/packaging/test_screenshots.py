"""Which pictures are older than the views they show."""

from __future__ import annotations

import pytest
import screenshots

from tests.places import ROOT


@pytest.mark.parametrize("name", [*screenshots.PICTURES, *screenshots.CHINESE])
def test_every_picture_names_sources_that_exist(name: str) -> None:
    assert screenshots.sources(name)
    assert all((ROOT / place).exists() for place in screenshots.sources(name))


def test_views_are_those_of_steps_that_are_photographed() -> None:
    steps = {step for *_, step in (*screenshots.PICTURES.values(), *screenshots.CHINESE.values())}
    assert set(screenshots.VIEWS) <= steps


def test_a_picture_is_old_once_one_of_its_sources_is_committed_later(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = {f"docs/images/{name}.png": 50 for name in (*screenshots.PICTURES, *screenshots.CHINESE)}
    times |= {
        place: 10 for name in (*screenshots.PICTURES, *screenshots.CHINESE) for place in screenshots.sources(name)
    }
    monkeypatch.setattr(screenshots, "committed_at", lambda *places: max(times.get(place, 0) for place in places))
    assert screenshots.check() == 0
    times["kvdesk/ui/graphs"] = 60
    assert screenshots.check() == 1
    said = capsys.readouterr().out
    assert "docs/images/graphs.png is older" in said
    assert "docs/images/timeline.png" not in said
    del times["docs/images/about.png"]
    assert screenshots.is_older(screenshots.committed_at("docs/images/about.png"), "about"), "it is not committed"


def test_another_model_answers_and_only_the_wanted_tours_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[list[str], dict[str, str]]] = []

    def tour(_out: object, options: list[str], _scale: str, wanted: dict[str, str]) -> bool:
        ran.append((options, wanted))
        return True

    monkeypatch.setattr(screenshots, "_tour", tour)
    assert screenshots.make({"window"}, ROOT / "some.gguf") == 0
    ((options, wanted),) = ran
    assert options[-2:] == ["--model", str(ROOT / "some.gguf")]
    assert wanted == {"window": "two-conversations"}
