"""Serving other programs: what the section of the settings says is wanted, what it shows."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from kvdesk.agents import AGENTS, Place
from kvdesk.message import ConversationId, MessageId
from kvdesk.settings import ServeSettings
from kvdesk.ui.server.serve_section import ServeSection
from kvdesk.ui.settings.page import SettingsPage
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.number_fields import WholeField
from kvdesk.viewmodel.curl import curl_line
from kvdesk.viewmodel.requests import RequestRow
from tests.ui.recording import Record

URL = "http://127.0.0.1:8099/v1"


def row(n: int, why: str = "") -> RequestRow:
    of = MessageId(f"a{n}"), ConversationId(f"c{n}"), f"program {n}", 0.0, n, 40, 30, 5
    return RequestRow(*of, "complete" if why else "streaming", why, asked="Messages, 2 tools")


@pytest.fixture
def page(window: MainWindow) -> SettingsPage:
    window.action_set.run("app.serve")
    page = window.rooms.settings
    assert page is not None
    page.serving.show_key("sk-kvdesk-secret")
    return page


@pytest.fixture
def section(page: SettingsPage) -> ServeSection:
    return page.serving


def port_of(page: SettingsPage) -> WholeField:
    field = page.field("serve", "port")
    assert isinstance(field, WholeField)
    return field


def test_the_switch_asks_with_what_is_chosen(window: MainWindow, page: SettingsPage, record: Record) -> None:
    asked, stopped, section = (
        record(page._kit.commands.serving.begin),
        record(page._kit.commands.serving.end),
        page.serving,
    )
    assert window.rooms.shown == "settings"
    assert section.serve.hasFocus()
    port_of(page).setValue(8099)
    section.serve.click()
    assert window.store.settings.current.serve == ServeSettings(port=8099), "what was typed last counts"
    assert asked == [()]
    section.show_starting()
    section.serve.click()
    assert (stopped, section.serve.isChecked(), section.serve.hasFocus()) == ([], True, True)
    section.show_serving(URL)
    assert (section.address, section.serve.isChecked()) == (URL, True)
    assert not port_of(page).isEnabled()
    assert page._rows._fields["serve", "port"].reset_button.isHidden()
    section.serve.click()
    assert stopped == [()]
    section.show_stopped("The port is taken.")
    assert (section.address, section._status.text(), section.serve.isChecked()) == ("", "The port is taken.", False)
    assert port_of(page).isEnabled()
    assert not page._rows._fields["serve", "port"].reset_button.isHidden()


def test_an_invalid_port_is_not_served(page: SettingsPage, qtbot: QtBot, record: Record) -> None:
    asked, section, field = record(page._kit.commands.serving.begin), page.serving, port_of(page)
    for port in ("99999", "80,5", "8o80"):
        field.selectAll()
        qtbot.keyClicks(field.lineEdit(), port)
        section.serve.click()
        assert port in section._status.text()
        assert not section.serve.isChecked()
    assert asked == []
    field.setValue(8099)
    section.serve.click()
    assert asked == [()]


def test_a_port_is_written_without_groups(page: SettingsPage) -> None:
    assert port_of(page).text() == "8080"
    said = [part.text() for part in page.findChildren(QLabel) if "65535" in part.text()]
    assert said == ["Programs find kvdesk there. Default 8080, from 1 to 65535"]


def test_the_key_is_hidden_and_can_be_copied(section: ServeSection) -> None:
    assert "secret" not in section.key_field.displayText()
    section.copy_key.click()
    assert QGuiApplication.clipboard().text() == "sk-kvdesk-secret"


def test_a_command_for_a_terminal_is_copied_with_the_key_and_shown_without(section: ServeSection) -> None:
    assert not section.copy_curl.isEnabled()
    section.show_serving(URL)
    assert "http://127.0.0.1:8099/v1/chat/completions" in section.curl.text()
    assert "secret" not in section.curl.text()
    section.copy_curl.click()
    assert QGuiApplication.clipboard().text() == curl_line(URL, "sk-kvdesk-secret")
    section.show_stopped()
    assert (section.curl.text(), section.copy_curl.isEnabled()) == ("", False)


def test_each_agent_has_a_line_to_copy(section: ServeSection) -> None:
    section.show_serving(URL, 16384)
    for i in range(1, section.program.count()):
        section.program.setCurrentIndex(i)
        agent = AGENTS[section.program.itemData(i)]
        assert section.program.itemText(i) == agent.title
        assert f" {agent.name}" in section.curl.text()
        assert "secret" not in section.curl.text()
        section.copy_curl.click()
        copied = QGuiApplication.clipboard().text()
        assert copied == agent.line(Place("http://127.0.0.1:8099", "sk-kvdesk-secret", "kvdesk", 16384))
    assert section.program.count() == 1 + len(AGENTS)
    section.show_stopped()
    assert section.curl.text() == ""


def test_the_window_shows_that_it_serves_and_leads_there(window: MainWindow, qtbot: QtBot) -> None:
    chip = window.status.findChild(QPushButton, "servingChip")
    assert chip.isHidden()
    window.store.show_served("http://127.0.0.1:8099/v1", 0)
    assert (chip.isVisible(), chip.accessibleName()) == (True, "Serving 127.0.0.1:8099")
    window.store.show_served("http://127.0.0.1:8099/v1", 2)
    assert chip.accessibleName() == "Serving 127.0.0.1:8099 · 2 running"
    chip.setFocus(Qt.FocusReason.TabFocusReason)
    assert window.focusWidget() is chip, "Tab leads there"
    qtbot.keyClick(chip, Qt.Key.Key_Space)
    page = window.rooms.settings
    assert page.serving.isVisible()
    window.store.show_served("", 0)
    assert chip.isHidden()


def test_a_port_does_not_touch_its_frame(page: SettingsPage) -> None:
    field = port_of(page)
    line = field.lineEdit()
    picture = field.grab().toImage()
    left = line.mapTo(field, line.rect().topLeft()).x()
    inner = picture.copy(3, 8, picture.width() - 6, picture.height() - 16)
    ground = inner.pixelColor(1, 1)
    inked = [x for x in range(inner.width()) for y in range(inner.height()) if inner.pixelColor(x, y) != ground]
    assert left >= 0
    assert min(inked) + 3 >= 8, "as in other fields"


def test_a_request_is_a_row_with_its_why(section: ServeSection) -> None:
    requests = section.requests
    assert requests._why.text() == "No program has asked yet."
    section.show_requests((row(1, "Because of one."),))
    section.show_requests((row(2), row(1, "Because of one.")), "Kept for programs: curl/8.", "90 % reused; no misses")
    assert requests.score.text() == "90 % reused; no misses"
    assert section.kept.text() == "Kept for programs: curl/8."
    model = requests.table.model()
    assert [model.index(i, 1).data() for i in range(model.rowCount())] == ["program 2", "program 1"]
    assert model.index(1, 3).data() == "30 of 40 (75 %)"
    assert model.index(1, 4).data() == "Messages, 2 tools"
    assert model.index(1, 2).data(Qt.ItemDataRole.DecorationRole).isValid()
    assert "is being answered" in requests._why.text()
    requests.table.selectRow(1)
    assert requests._why.text() == "Because of one."
    section.show_requests((row(3), row(2, "Because of two."), row(1, "Because of one.")))
    assert requests.table.currentIndex().row() == 2, "the row that is chosen stays chosen"
    assert requests._why.text() == "Because of one."
