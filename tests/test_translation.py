"""`tr` asks what was installed, and is the text itself before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kvdesk import translation
from kvdesk.translation import tr


@pytest.fixture
def _restored() -> Iterator[None]:
    yield
    translation.install(translation.english)


def test_without_a_translator_a_text_is_itself() -> None:
    assert tr("New chat") == "New chat"
    assert tr("%n tokens", 3) == "3 tokens"


@pytest.mark.usefixtures("_restored")
def test_an_installed_translator_is_asked() -> None:
    asked: list[tuple[str, int]] = []

    def german(text: str, n: int) -> str:
        asked.append((text, n))
        return {"New chat": "Neuer Chat"}[text]

    translation.install(german)
    assert tr("New chat") == "Neuer Chat"
    assert asked == [("New chat", -1)]
