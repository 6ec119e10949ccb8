from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from kvdesk import session
from kvdesk.message import ConversationId
from kvdesk.session import Commands
from kvdesk.settings import Settings, ThemeChoice
from kvdesk.store.store import Store
from kvdesk.ui.shell.main_window import MainWindow
from tests.benchmarks.ui import messages
from tests.ui.samples import show_messages


def test_every_figure_is_measured(
    qapp: QApplication, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_OPENINGS", 1), ("_WHEEL_STEPS", 4), ("_IDLE_S", 0.05), ("_KEYS", 4), ("LONG_CHARS", 2_000)):
        monkeypatch.setattr(messages, name, value)
    file = tmp_path / "chats.sqlite3"
    long, texts = messages.stored(file, n=20), messages.stored(file, n=10, n_chars=9_000)
    store = Store(file)
    trees = {known.id: store.all_messages(known.id) for known in (long, texts)}
    assert sorted(known.title for known in store.conversations()) == ["10 messages", "20 messages"]
    store.close()
    assert sum(len(message.text) for message in trees[texts.id]) >= 9_000

    class Selecting(Commands):
        """Shows a chat, and does nothing else."""

        def select(self, conversation: ConversationId) -> None:
            (known,) = (one for one in (long, texts) if one.id == conversation)
            window.store.show_conversations((long, texts), known.id)
            show_messages(window, known.id, trees[known.id])

    window = MainWindow(qapp, session.Store(Settings(theme=ThemeChoice.DARK)), Selecting())
    qtbot.addWidget(window)
    window.show()
    qtbot.waitExposed(window)
    said: list[str] = []
    figures, values = messages.measure(window, long, texts, lambda s: qtbot.wait(round(s * 50)), said.append)
    judged = {"open_500_messages_ms", "scroll_p95_ms", "idle_share_of_a_core", "typing_p99_ms", "rendering_p95_ms"}
    assert {figure.name for figure in figures} == judged
    assert all(figure.bars and 0 <= figure.value < 20_000 for figure in figures)
    assert len(values) == 5
    assert window.chat.composer.text == ""
    QCoreApplication.processEvents()
