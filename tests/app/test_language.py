"""A catalogue changes texts that are made after it was installed; without one they are English."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from kvdesk.app.language import install_language
from kvdesk.translation import plural, tr
from kvdesk.ui.shell.main_window import MainWindow

CATALOGUES = Path(__file__).parent / "translations"


@pytest.fixture(autouse=True)
def _english_again(qapp: QApplication) -> Iterator[None]:
    yield
    install_language(qapp, "en")


def test_a_catalogue_translates_and_counts(qapp: QApplication) -> None:
    assert install_language(qapp, "de_AT", CATALOGUES) == "de"
    assert tr("New chat") == "Neuer Chat"
    assert (plural("1 token", "%n tokens", 1), plural("1 token", "%n tokens", 3)) == (
        "1 Token, eins",
        "3 Token, mehrere",
    )
    assert tr("Not in it") == "Not in it"


@pytest.mark.parametrize("language", ["system", "fr", "nonsense"])
def test_without_a_catalogue_texts_are_english(qapp: QApplication, language: str) -> None:
    install_language(qapp, "de", CATALOGUES)
    assert install_language(qapp, language, CATALOGUES / "none") == "en"
    assert (tr("New chat"), plural("1 token", "%n tokens", 3)) == ("New chat", "3 tokens")


def test_the_window_is_made_in_the_language(qapp: QApplication) -> None:
    install_language(qapp, "de", CATALOGUES)
    window = MainWindow(qapp)
    assert window.action_set["chat.new"].label == "Neuer Chat"
    window.deleteLater()
