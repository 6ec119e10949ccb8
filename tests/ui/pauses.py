"""How long parts of the window wait after the last keystroke."""

from collections.abc import Iterator

import pytest

WAITING = (
    *("composer.composer.PAUSE_MS", "messages.message_editor.PAUSE_MS", "parameters.panel._ASK_MS"),
    *("settings.text_field._LOOK_MS", "attention.page._ASK_MS"),
)


@pytest.fixture(scope="session", autouse=True)
def short_pauses() -> Iterator[None]:
    """A third of what a person gets."""
    with pytest.MonkeyPatch.context() as patch:
        for name in WAITING:
            patch.setattr(f"kvdesk.ui.{name}", 100)
        yield
