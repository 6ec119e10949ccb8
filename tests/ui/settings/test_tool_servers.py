"""Tool servers in the settings and in the choice of a chat: what has the keyboard keeps it while they change."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from kvdesk.settings import ToolGrant, ToolServer
from kvdesk.tools.servers import ServerState, Tool, bound_to
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.tools.consent_dialog import ConsentDialog
from kvdesk.ui.tools.servers_section import ServersSection
from kvdesk.ui.widgets.style.sizes import BOX_PX
from kvdesk.values import replace
from tests.ui.recording import hear, record
from tests.ui.samples import ONE, show_messages, update_message
from tests.ui.tool_places import LOCAL, REMOTE, TOOLS, calls, set_up


@pytest.fixture
def section(window: MainWindow) -> ServersSection:
    set_up(window)
    window.action_set.run("app.tools")
    page = window.rooms.settings
    return page.tools


def change(window: MainWindow, name: str, **what: object) -> None:
    servers = window.store.settings.current.tool_servers
    changed = tuple(one.model_copy(update=what) if one.name == name else one for one in servers)
    window.store.settings.change(tool_servers=changed)


def test_the_keyboard_stays_on_the_button_of_a_server_that_starts_and_signs_in(
    window: MainWindow, section: ServersSection
) -> None:
    row, name = section.rows[REMOTE.name], REMOTE.name
    started, stopped = record(window.commands.tools.start), record(window.commands.tools.stop)
    row.main.setFocus()
    assert row.main.text() == "Connect"
    row.main.click()
    for state in ("starting", "on"):
        window.store.show_tools(states={name: ServerState(name, state)})
        assert row.main.hasFocus()
        assert row.main.accessibleName() == f"Stop: {name}"
    change(window, name, signed_in=True)
    assert section.rows[name] is row
    assert row.main.hasFocus()
    row.main.click()
    assert (started, stopped) == ([(name,)], [(name,)])
    row.sign_out.setFocus()
    change(window, name, signed_in=False)
    assert row.sign_out.isHidden()
    assert row.main.hasFocus()


def test_a_server_that_is_set_up_again_is_below_the_others(window: MainWindow, section: ServersSection) -> None:
    first, *others = window.store.settings.current.tool_servers
    section.rows[first.name].main.setFocus()
    window.store.settings.change(tool_servers=(*others, first))
    rows = [section._list.itemAt(i).widget() for i in range(section._list.count())]
    assert rows == [section.rows[one.name] for one in (*others, first)]
    assert section.rows[first.name].main.hasFocus()


def test_a_tool_that_is_left_out_keeps_the_keyboard_and_the_list_stays_open(
    window: MainWindow, section: ServersSection
) -> None:
    row = section.rows[LOCAL.name]
    row.fold.button.setChecked(True)
    hear(window.commands.tools.leave_out, lambda name, left_out: change(window, name, left_out=left_out))
    box = row.tools.boxes["git_status"]
    box.setFocus()
    box.click()
    assert window.store.settings.current.tool_servers[0].left_out == ("git_status",)
    assert row._price.text().startswith("1 tool ")
    window.store.show_tools(lists={LOCAL.name: (*TOOLS, Tool("git_add"))})
    assert list(row.tools.boxes) == ["git_log", "git_status", "git_add"]
    assert row.tools.boxes["git_status"] is box
    assert box.hasFocus()
    assert not box.isChecked()
    assert row.fold.button.isChecked()
    change(window, LOCAL.name, left_out=())
    assert box.isChecked()


def test_another_permission_leaves_the_keyboard_on_the_first(window: MainWindow, section: ServersSection) -> None:
    [first, _] = section.grants.values()
    revoke = first.findChild(QPushButton)
    revoke.setFocus()
    now = window.store.settings.current.tool_grants
    window.store.settings.change(tool_grants=(now[0], ToolGrant(bound=bound_to(LOCAL), what="server")))
    assert revoke.hasFocus()
    assert [row.said for row in section.grants.values()] == ["git may start", "All tools of git may be called"]


@pytest.mark.parametrize(
    ("place", "values", "server", "given"),
    [
        (
            "uvx mcp-server-git --repository .",
            "A=1\nB = x=y",
            ToolServer(
                name="mcp-server-git", command="uvx", args=("mcp-server-git", "--repository", "."), env=("A", "B")
            ),
            {"A": "1", "B": "x=y"},
        ),
        (
            "https://tools.example/mcp",
            "Authorization: Bearer a:b",
            ToolServer(name="tools.example", url="https://tools.example/mcp", headers=("Authorization",)),
            {"Authorization": "Bearer a:b"},
        ),
    ],
)
def test_a_server_is_added(
    window: MainWindow, section: ServersSection, place: str, values: str, server: ToolServer, given: dict[str, str]
) -> None:
    added = record(window.commands.tools.add)
    section.place.setText(place)
    section.values.setPlainText(values)
    section.adding.click()
    assert added == [(server, given)]
    assert section.problem.isHidden()
    assert (section.place.text(), section.values.toPlainText()) == ("", "")


@pytest.mark.parametrize(
    ("place", "values", "said"),
    [("", "", "Write a command, or an address"), ("ftp://x", "", "Write a command"), ("uvx x", "A", "as NAME=value")],
)
def test_what_is_no_server_is_refused_and_stays(
    window: MainWindow, section: ServersSection, place: str, values: str, said: str
) -> None:
    added = record(window.commands.tools.add)
    section.place.setText(place)
    section.values.setPlainText(values)
    section.adding.click()
    assert added == []
    assert said in section.problem.text()
    assert (section.place.text(), section.values.toPlainText()) == (place, values)


def test_tools_are_switched_between_answers_and_the_choice_says_so(window: MainWindow) -> None:
    set_up(window)
    show_messages(window, ONE, calls())
    choice = window.chat.header.tools_choice
    choice.choose()
    box = choice.boxes[LOCAL.name]
    assert not box.isEnabled()
    assert choice._missing.text() == "Wait until all answers have ended"
    update_message(window, replace(calls()[3], state="complete"))
    assert box.isEnabled()
    assert choice._missing.text() == ""
    switched = record(window.commands.tools.switch)
    box.click()
    assert switched == [(ONE, LOCAL.name, True)]
    choice.close()


def test_what_is_said_of_a_server_stays_below_its_name_at_another_zoom(window: MainWindow) -> None:
    set_up(window)
    choice, theme = window.chat.header.tools_choice, window.theme
    choice.show_servers()
    theme.set_size(200, 0)
    choice.show_servers()
    margins = {line._about.contentsMargins().left() for line in choice._lines.values()}
    assert margins == {theme.px(BOX_PX)}
    theme.set_size(100)


def test_the_keyboard_stays_in_the_choice_of_a_chat(window: MainWindow) -> None:
    set_up(window)
    choice = window.chat.header.tools_choice
    choice.choose()
    for widget in (choice.boxes[REMOTE.name], choice.findChild(QPushButton)):
        widget.setFocus()
        window.store.show_tools(states={})
        assert QApplication.focusWidget() is widget
    choice.close()


@pytest.mark.usefixtures("fresh")
def test_one_comes_to_add_the_first_server_or_to_start_one(window: MainWindow, qtbot: QtBot) -> None:
    window.store.settings.change(tool_servers=())
    window.action_set.run("app.tools")
    page = window.rooms.settings
    section = page.tools
    hear(window.commands.tools.add, lambda server, _: window.store.settings.change(tool_servers=(server,)))
    assert section.form.is_open
    assert section.place.hasFocus()
    started = record(window.commands.tools.start)
    qtbot.keyClicks(section.place, "/opt/bin/python3 /srv/tools/my_mcp_server.py --port 1")
    qtbot.keyClick(section.place, Qt.Key.Key_Return)
    assert list(section.rows) == ["my_mcp_server"]
    assert not section.form.is_open
    qtbot.waitUntil(section.rows["my_mcp_server"].main.hasFocus)
    assert not started, "this Enter added it, and another one starts it"
    window.rooms.show_chats()
    window.action_set.run("app.tools")
    assert section.rows["my_mcp_server"].main.hasFocus(), "one starts it"


@pytest.mark.parametrize("reaches_yes", [False, True])
def test_no_is_the_default_and_enter_presses_what_has_the_focus(
    window: MainWindow, qtbot: QtBot, reaches_yes: bool
) -> None:
    dialog = ConsentDialog(window.theme, window, LOCAL)
    answers: list[tuple[bool, bool]] = []
    dialog.answered.connect(lambda yes, for_good: answers.append((yes, for_good)))
    dialog.bring_up()
    qtbot.waitUntil(dialog.no.hasFocus)
    for _ in range(20 if reaches_yes else 0):
        if not dialog.yes.hasFocus():
            dialog.focusNextPrevChild(True)
    qtbot.keyClick(dialog.focusWidget(), Qt.Key.Key_Return)
    assert answers == [(reaches_yes, False)]
