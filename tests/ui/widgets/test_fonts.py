"""The fonts that kvdesk brings: the window is the same whatever fonts the system has, at every scale."""

import json
import os
import re
import subprocess
import sys
from typing import Any
from unicodedata import east_asian_width

import pytest
from PySide6.QtGui import QFont, QFontDatabase, QFontInfo, QFontMetricsF, QRawFont
from PySide6.QtWidgets import QApplication

from kvdesk.ui.widgets.controls import label
from kvdesk.ui.widgets.style import fonts
from kvdesk.ui.widgets.style.theme import Theme
from tests.places import ROOT
from tests.ui.layout_child import layout

SCALES = "1.25", "1.5"
needs_fontconfig = pytest.mark.skipif(sys.platform != "linux", reason="fonts are hidden with fontconfig")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a system without a single font."""
    folder = tmp_path_factory.mktemp("fontconfig")
    file = folder / "fonts.conf"
    file.write_text(f"<fontconfig><cachedir>{folder}</cachedir></fontconfig>", encoding="utf-8")
    return {**os.environ, "FONTCONFIG_FILE": str(file), "PYTHONPATH": str(ROOT)}


def told_by_child(env: dict[str, str]) -> Any:
    command = [sys.executable, str(ROOT / "tests/ui/layout_child.py")]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_the_window_has_the_fonts_that_kvdesk_brings(theme: Theme) -> None:
    used = {name: QFontInfo(getattr(theme, name)).family() for name in ("text", "strong", "large", "small")}
    assert set(used.values()) == {fonts.TEXT}
    assert {QFontInfo(font).family() for font in (theme.mono, theme.mono_small)} == {fonts.MONO}
    assert QRawFont.fromFont(theme.strong).styleName() == "SemiBold"
    small = label("12", family="mono")
    small.ensurePolished()
    assert QFontInfo(small.font()).family() == fonts.MONO


def test_every_sign_of_the_interface_is_in_its_font(theme: Theme) -> None:
    """Whatever the program writes, in its font of texts or of tokens: a sign from another font would have another
    height. What stands for bytes that are no text may look like a box; signs of Chinese and Japanese, and those of
    other people's documents, which the program only recognises, are of the system's fonts.
    """
    files = [file for file in (ROOT / "kvdesk").rglob("*.py") if file.parent.name != "attachments"]
    written = set("".join(file.read_text(encoding="utf-8") for file in files)) - {"�"}
    written = {sign for sign in written if sign.isprintable() and east_asian_width(sign) not in "WF"}
    text, mono = QRawFont.fromFont(theme.text), QRawFont.fromFont(theme.mono)
    missing = {sign for sign in written if not text.supportsCharacter(ord(sign))}
    assert {sign for sign in missing if not mono.supportsCharacter(ord(sign))} == set()


@needs_fontconfig
def test_a_system_without_fonts_shows_the_same_window_and_emoji(qapp: QApplication, bare: dict[str, str]) -> None:
    here, there = layout(qapp), told_by_child(bare)
    assert there["boxes"] == here["boxes"]
    assert there["families"] == here["families"] == [fonts.TEXT, fonts.MONO]
    assert there["emoji"] == there["emoji in code"] == [fonts.EMOJI]
    assert "" not in here["emoji"] + here["emoji in code"]
    assert there["too_high_px"] == 0


@pytest.mark.matrix
@needs_fontconfig
@pytest.mark.parametrize("scale", SCALES)
def test_numbers_of_two_conversations_need_no_scrolling_at_other_scales(scale: str, bare: dict[str, str]) -> None:
    assert told_by_child({**bare, "QT_SCALE_FACTOR": scale})["too_high_px"] == 0


def test_the_size_of_the_text_follows_the_system_within_bounds(theme: Theme, monkeypatch: pytest.MonkeyPatch) -> None:
    assert theme.text.pixelSize() >= 13
    for asked, expected in ((8, fonts.SMALLEST_PX), (16, 16), (40, fonts.LARGEST_PX)):
        system = QFont()
        system.setPixelSize(asked)
        monkeypatch.setattr(QFontDatabase, "systemFont", lambda _kind, font=system: font)
        assert fonts.text_font().pixelSize() == expected


def test_every_font_has_its_licence() -> None:
    folder = ROOT / "resources" / "fonts"
    named = {re.split("[-.]", file.name)[0] for file in folder.glob("*.ttf")}
    assert named == {"Inter", "JetBrainsMono", "NotoEmoji"}
    for name in named:
        assert "SIL OPEN FONT LICENSE Version 1.1" in (folder / f"{name}-OFL.txt").read_text(encoding="utf-8")
    assert sum(file.stat().st_size for file in folder.glob("*.ttf")) < 1_400_000


@pytest.mark.stress
@pytest.mark.timeout(1200)
@needs_fontconfig
@pytest.mark.parametrize("scale", ["1", *SCALES])
def test_all_tests_of_the_window_pass_without_the_systems_fonts_and_at_every_scale(
    scale: str, bare: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/ui", "tests/app"]
    ended = subprocess.run(
        command, cwd=ROOT, env={**bare, "QT_SCALE_FACTOR": scale}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout[-4000:]


def test_digits_are_of_one_width_and_hyphens_are_not_torn_from_their_words(theme: Theme) -> None:
    plain = QFont(theme.text)
    plain.unsetFeature(QFont.Tag("tnum"))
    tabular, proportional = QFontMetricsF(theme.text), QFontMetricsF(plain)
    for font in (theme.text, theme.strong, theme.small, theme.mono):
        assert len({QFontMetricsF(font).horizontalAdvance(digit * 8) for digit in "0123456789"}) == 1
    assert len({proportional.horizontalAdvance(digit) for digit in "0123456789"}) > 1
    for sign in "-.,:()+/":
        assert tabular.horizontalAdvance(sign) == proportional.horizontalAdvance(sign), sign
