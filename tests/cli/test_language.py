"""Commands and child processes speak the person's language; JSON is English."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvdesk import __main__, translation
from kvdesk.cli.language import _system, install_language
from kvdesk.translation import tr

GERMAN = Path(__file__).parents[1] / "app" / "translations" / "kvdesk_de.mo"


@pytest.fixture(autouse=True)
def _german(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr("kvdesk.cli.language.catalogues", lambda: {"de": GERMAN})
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    for variable in ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG", translation.VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    yield
    translation.install(translation.english)


@pytest.mark.parametrize(
    ("variable", "chosen", "system", "expected"),
    [
        ("", "", "de_AT.UTF-8", "Neuer Chat"),
        ("", "", "C.UTF-8", "New chat"),
        ("", "system", "de", "Neuer Chat"),
        ("", "en", "de", "New chat"),
        ("", "de", "en_US.UTF-8", "Neuer Chat"),
        ("en", "de", "de", "New chat"),
        ("de", "en", "en", "Neuer Chat"),
    ],
)
def test_what_is_nearest_decides(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, chosen: str, system: str, expected: str
) -> None:
    monkeypatch.setenv("LANG", system)  # glibc reads LANGUAGE for its own sentences too, and keeps them
    if variable:
        monkeypatch.setenv(translation.VARIABLE, variable)
    if chosen:
        (tmp_path / "settings.json").write_text(json.dumps({"language": chosen}), "utf-8")
    install_language()
    assert tr("New chat") == expected


@pytest.mark.parametrize("damaged", ["", "[]", "{", '{"language": 3}', "[" * 100_000])
def test_damaged_settings_leave_the_language_of_the_system(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, damaged: str
) -> None:
    monkeypatch.setenv("LANG", "de")
    (tmp_path / "settings.json").write_text(damaged, "utf-8")
    install_language()
    assert tr("New chat") == "Neuer Chat"


def test_the_first_variable_that_is_set_decides() -> None:
    assert _system({"LANG": "zh_CN.UTF-8"}) == ["zh_CN"]
    assert _system({"LC_ALL": "de_DE@euro", "LANG": "zh_CN.UTF-8"}) == ["de_DE"]
    assert _system({"LANGUAGE": "fr:zh_CN:en", "LANG": "C"}) == ["fr", "zh_CN", "en"]


@pytest.mark.parametrize(("more", "expected"), [([], "de"), (["--json"], "en")])
def test_a_command_speaks_the_language_but_its_json_is_english(
    monkeypatch: pytest.MonkeyPatch, more: list[str], expected: str
) -> None:
    monkeypatch.setenv("LANG", "de")
    monkeypatch.setattr(__main__, "_run_command", lambda *_: 0)
    assert __main__.main(["capabilities", *more]) == 0
    assert translation.installed() == expected
