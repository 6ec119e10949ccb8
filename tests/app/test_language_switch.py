"""Another language while the application runs: every part of the window is made anew, and nobody loses anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
import shiboken6
from PySide6.QtCore import QEvent, QMetaMethod, QObject, Qt
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QSplitter, QWidget
from pytestqt.qtbot import QtBot

from kvdesk import translation
from kvdesk.app import controller, language
from kvdesk.chat import ConversationId
from kvdesk.protocol.cache import ContextReady
from kvdesk.protocol.chat import LogLine, ModelLoaded, TextDelta, TurnEnded, TurnStarted
from kvdesk.ui.settings import appearance
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.controls import ElidedLabel
from tests.app.conftest import Rig
from tests.app.test_controller import STATS, answer, say
from tests.app.test_language import CATALOGUES
from tests.ui.samples import CONTEXT, MODEL, cache_view
from tests.ui.test_pseudo_language import _LATIN, left, pseudo, texts


@pytest.fixture(autouse=True)
def _pseudo_language(monkeypatch: pytest.MonkeyPatch, qapp: QApplication) -> Iterator[None]:
    """ "xx" is the pseudo language; others are what they are."""

    def install(app: QApplication, name: str) -> str:
        if name != "xx":
            return language.install_language(app, name)
        translation.install(pseudo)
        return name

    monkeypatch.setattr(controller, "install_language", install)
    yield
    language.install_language(qapp, "en")


def shown(rig: Rig, qtbot: QtBot) -> MainWindow:
    """Its window, with a model and a context, on the screen."""
    window = rig.window
    window.session.settings.change(all_instruments=True)
    rig.worker.give(ModelLoaded(MODEL), ContextReady(CONTEXT, rebuilt=False))
    qtbot.waitUntil(lambda: rig.window.status.text != "")
    window.resize(1280, 600)
    window.show()
    qtbot.waitExposed(window)
    return window


def switch(rig: Rig, qtbot: QtBot, to: str = "xx") -> None:
    """As the settings dialog does."""
    with qtbot.waitSignal(rig.window.remade):
        rig.window.session.settings.change(language=to)
    qtbot.wait(0)
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def type_text(rig: Rig, qtbot: QtBot, text: str) -> None:
    qtbot.keyClicks(rig.window.chat.composer.edit, text)


def test_an_answer_that_streams_goes_on_and_a_draft_stays(rig: Rig, qtbot: QtBot) -> None:
    window = shown(rig, qtbot)
    asked = say(rig, "Tell me a story")
    of = asked.conversation, asked.answer
    rig.worker.give(TurnStarted(*of, 1, 0, 4), TextDelta(*of, "Once upon ", (1, 2)))
    qtbot.waitUntil(lambda: "Once" in window.chat.view.widgets[-1].message.text)
    type_text(rig, qtbot, "and then?")
    qtbot.keyClick(window.chat.composer.edit, Qt.Key.Key_Left)
    rig.worker.give(TextDelta(*of, "a time ", (3, 4)))  # not taken yet when the language changes
    switch(rig, qtbot)
    composer = window.chat.composer
    assert (composer.text, composer.edit.textCursor().position()) == ("and then?", 8)
    assert composer.is_running
    rig.worker.give(TextDelta(*of, "there was a cache.", (5,)), TurnEnded(*of, "complete", STATS))
    qtbot.waitUntil(lambda: rig.controller.conversations.answer_of(asked.conversation) is None)
    assert window.chat.view.widgets[-1].message.text == "Once upon a time there was a cache."
    assert rig.controller.conversations.branch(asked.conversation)[-1].tokens == (1, 2, 3, 4, 5)
    assert rig.worker.stopped == []
    assert rig.worker.cancelled == 0
    say(rig, "and then?")  # the new parts are heard


def test_every_text_is_in_the_new_language(rig: Rig, qtbot: QtBot) -> None:
    window = shown(rig, qtbot)
    rig.worker.give(cache_view())
    window.shown_settings.open()
    switch(rig, qtbot)
    assert window.rooms.shows_settings
    labels = window.findChildren(QLabel)
    mono = [label for label in labels if label.property("family") == "mono"]  # llama.cpp's names and calls
    own = {label.full_text if isinstance(label, ElidedLabel) else label.text() for label in mono}
    found = {
        f"{type(widget).__module__}: {text!r}"
        for widget in (window, *window.findChildren(QWidget))
        for text in texts(widget)
        if text not in own
        and not any(name and text.endswith(f": {name}") for name in own)
        and _LATIN.search(left(text).replace("English", "").replace(" MB", ""))
    }
    assert not found, "\n".join(sorted(found))


def heard(window: MainWindow) -> Counter[tuple[str, str]]:
    """How many receive each signal of kvdesk's own widgets and objects, by class."""
    found: Counter[tuple[str, str]] = Counter()
    for one in (window, *window.findChildren(QObject)):
        if not type(one).__module__.startswith("kvdesk."):
            continue
        meta = one.metaObject()
        for i in range(meta.methodCount()):
            method = meta.method(i)
            if method.methodType() == QMetaMethod.MethodType.Signal:
                signature = bytes(method.methodSignature().data()).decode()
                found[type(one).__name__, signature] += one.receivers(f"2{signature}")
    return found


def kinds(window: MainWindow) -> Counter[str]:
    found = (window, *window.findChildren(QObject))
    return Counter(type(one).__qualname__ for one in found if type(one).__module__.startswith("kvdesk."))


def test_the_new_parts_are_connected_as_the_first_and_none_of_those_is_left(rig: Rig, qtbot: QtBot) -> None:
    window = shown(rig, qtbot)
    switch(rig, qtbot)
    before, were = heard(window), kinds(window)
    first = window.findChildren(QPushButton)
    switch(rig, qtbot, "en")
    assert kinds(window) - were == Counter()
    assert were - kinds(window) == Counter()
    after = heard(window)
    assert {name: (n, after[name]) for name, n in before.items() if after[name] != n} == {}
    assert not set(first) & set(window.findChildren(QPushButton))


def test_the_first_switch_loses_no_connection(rig: Rig, qtbot: QtBot) -> None:
    window = shown(rig, qtbot)
    before = heard(window)
    switch(rig, qtbot)
    after = heard(window)
    assert {name: (n, after[name]) for name, n in before.items() if after[name] < n} == {}


def test_what_one_was_doing_goes_on(rig: Rig, qtbot: QtBot) -> None:
    window = shown(rig, qtbot)
    for i in range(6):
        answer(rig, qtbot, say(rig, f"Question {i}"), "A long answer.\n\n" * 8)
    branch = rig.controller.conversations.branch(ConversationId(rig.controller.selected or ""))
    rig.worker.give(LogLine("warning", "a line of the log"))
    window.shown_settings.show_page("Log")
    window.chat.view.jump_to(branch[4].id)
    reading = window.chat.view.reading
    assert reading is not None
    type_text(rig, qtbot, "put aside")
    answered = window.chat.view.widget_of(branch[5].id)
    assert answered is not None
    answered.start_edit()
    assert answered.editor is not None
    answered.editor.edit.setPlainText("A better answer")
    window.chat.view.start_edit(branch[0].id)
    asked = window.chat.view.widget_of(branch[0].id)
    assert asked is not None
    assert asked.editor is not None
    asked.editor.edit.setPlainText("Question 0 in other words")
    window.chat.view.read_on(reading)
    before = window.chat.view.reading
    window.conversations.search.setText("Question")
    size, widths = window.geometry(), window.findChildren(QSplitter)[0].sizes()
    switch(rig, qtbot)
    assert window.geometry() == size
    assert window.findChildren(QSplitter)[0].sizes()[::2] == widths[::2]
    assert window.inspector.tab == "Log"
    assert "a line of the log" in window.inspector.log.text
    assert window.conversations.search.text() == "Question"
    edits = {branch[0].id: "Question 0 in other words", branch[5].id: "A better answer"}
    assert window.chat.view.edits == edits
    assert window.chat.view.reading == before
    assert window.chat.composer.text == "put aside"


def test_it_is_chosen_in_the_settings_whose_edits_stay(rig: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (appearance, language):
        monkeypatch.setattr(module, "catalogues", lambda _folder=None: {"de": CATALOGUES / "kvdesk_de.qm"})
    window = shown(rig, qtbot)
    window.shown_settings.open()
    old = window.rooms.settings
    assert old is not None
    old.field("sampling", "top_k").setValue(7)  # type: ignore[attr-defined]
    old.field("context", "n_ctx").setValue(2048)  # type: ignore[attr-defined]
    with qtbot.waitSignal(window.remade):
        old.language.setCurrentIndex(old.language.findText("Deutsch"))
    assert window.action_set["chat.new"].label == "Neuer Chat"
    new = window.rooms.settings
    assert new is not None
    assert new is not old
    assert new.isVisible()
    assert new.field("sampling", "top_k").value() == 7  # type: ignore[attr-defined]
    assert rig.controller.settings.sampling.top_k == 7
    assert new.field("context", "n_ctx").value() == 2048  # type: ignore[attr-defined]
    assert new.bar.isVisible()
    assert new.language.currentText() == "Deutsch"
    assert rig.controller.settings.language == "de"


def test_queued_messages_and_a_tour_are_shown_again(rig: Rig, qtbot: QtBot) -> None:
    window = shown(rig, qtbot)
    say(rig, "First")
    rig.controller.send_message(ConversationId(rig.controller.selected or ""), "Second")
    window.help.start_tour()
    assert window.help.introduction is not None
    window.help.introduction.next_button.click()
    switch(rig, qtbot)
    assert window.chat.queue.isVisible()
    assert window.help.introduction.step == 1
    assert window.help.introduction.isVisible()


def test_nobody_holds_a_part_that_is_gone(rig: Rig, qtbot: QtBot) -> None:
    """Rooms and dialogs were open; whoever shows something in them later would fail."""
    window = shown(rig, qtbot)
    window.rooms.show_models()
    window.rooms.show_get_models()
    window.rooms.show_lab()
    window.rooms.show_chats()
    for name in ("model.server", "app.serve", "cache.compact", "chat.parameters", "settings.open", "help.palette"):
        window.action_set.run(name)
    switch(rig, qtbot)
    held = {
        f"{type(owner).__name__}.{name}"
        for owner in (*window.children(), *vars(rig.controller).values(), *vars(window).values())
        for name, value in (vars(owner) if hasattr(owner, "__dict__") else {}).items()
        if isinstance(value, QObject) and not shiboken6.isValid(value)
    }
    assert held == set()
