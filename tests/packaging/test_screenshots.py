"""Which pictures are older than the views they show."""

from pathlib import Path

import pytest
import screenshots
from PIL import Image, ImageSequence

from tests.places import ROOT
from tests.tour.command import FILMS

LARGEST_FILM = 3_000_000  # bytes


def test_every_picture_names_sources_that_exist() -> None:
    sources = {name: screenshots.sources(name) for name in screenshots.EVERY_NAME}
    assert all(sources.values())
    assert [(name, place) for name, places in sources.items() for place in places if not (ROOT / place).exists()] == []


def test_views_are_those_of_steps_that_are_photographed() -> None:
    assert set(screenshots.VIEWS) <= {step for _theme, step in screenshots.ALL.values()}


def test_films_are_those_of_the_tour_and_small() -> None:
    assert [film for _theme, film in screenshots.FILMS.values()] == [*FILMS]
    for name in screenshots.FILMS:
        assert (ROOT / screenshots.file_of(name)).stat().st_size < LARGEST_FILM, name


def test_a_picture_is_old_once_one_of_its_sources_is_committed_later(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = {screenshots.file_of(name): 50 for name in screenshots.EVERY_NAME}
    times |= {place: 10 for name in screenshots.EVERY_NAME for place in screenshots.sources(name)}
    monkeypatch.setattr(screenshots, "committed_at", lambda *places: max(times.get(place, 0) for place in places))
    assert screenshots.check() == 0
    times["kvdesk/ui/graphs"] = 60
    assert screenshots.check() == 1
    said = capsys.readouterr().out
    assert "docs/images/graphs.png is older" in said
    assert "docs/images/timeline.png" not in said
    del times["docs/images/about.png"]
    assert screenshots.is_older(screenshots.committed_at("docs/images/about.png"), "about"), "it is not committed"


def test_another_model_answers_and_only_the_wanted_tours_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran: list[list[str]] = []

    def demo(out: Path, options: list[str]) -> bool:
        ran.append(options)
        out.mkdir()
        for theme in ("dark", "light"):
            (out / f"07-second-turn-{theme}.png").write_bytes(theme.encode())
        return True

    (tmp_path / "docs/images").mkdir(parents=True)
    monkeypatch.setattr(screenshots, "ROOT", tmp_path)
    monkeypatch.setattr(screenshots, "_demo", demo)
    assert screenshots.make({"second-turn"}, tmp_path / "some.gguf") == 0
    assert ran == [["--theme", "both", "--model", str(tmp_path / "some.gguf")]]
    assert (tmp_path / "docs/images/second-turn.png").read_bytes() == b"light"


def test_frames_are_joined_in_their_order_and_shown_as_long_as_they_were(tmp_path: Path) -> None:
    for ms, colour in ((0, "red"), (200, "green"), (5200, "blue")):
        Image.new("RGB", (64, 48), colour).save(tmp_path / f"frame-{ms:06d}.bmp")
    film = Image.open(screenshots.join(tmp_path))
    assert (film.format, film.size, film.info["loop"]) == ("WEBP", (64, 48), 0)
    seen = []
    for frame in ImageSequence.Iterator(film):
        red, green, blue = frame.convert("RGB").getpixel((32, 24))  # type: ignore[misc]
        film.load()
        seen.append((film.info["duration"], max(("red", red), ("green", green), ("blue", blue), key=lambda c: c[1])[0]))
    assert seen == [(200, "red"), (screenshots.FRAME_AT_MOST_MS, "green"), (screenshots.LAST_FRAME_MS, "blue")]
