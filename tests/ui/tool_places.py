"""The places of tools and of probabilities in the window, each filled."""

from collections.abc import Iterator
from typing import Final

from PySide6.QtWidgets import QWidget

from kvdesk.message import Message, MessageId, ToolUse
from kvdesk.protocol.chat import TokenLogprobs
from kvdesk.protocol.logprobs import pack
from kvdesk.protocol.prompt import ToolPrice
from kvdesk.session.state import ToolQuestion
from kvdesk.settings import ToolGrant, ToolServer
from kvdesk.tools.servers import ServerState, Tool, bound_to
from kvdesk.ui.messages.tool_message import ToolMessage
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.tools.consent_dialog import ConsentDialog, SignInDialog
from kvdesk.values import replace
from tests.protocol.logprobs import prob
from tests.ui.samples import ONE, STATS, message, show_messages

LOCAL: Final = ToolServer(
    name="git", command="uvx", args=("mcp-server-git", "--repository", "/home/me/a b"), env=("GIT_AUTHOR_NAME",)
)
REMOTE: Final = ToolServer(
    name="tickets-of-the-whole-company", url="https://tools.example/mcp", headers=("Authorization",)
)
TOOLS: Final = (
    Tool("git_log", "Shows the commit logs, the newest first, with author, date and message of each one of them."),
    Tool("git_status", "Shows what is changed."),
)
PIECES: Final = ((0.9, "The"), (0.3, " sea"), (0.05, " is"), (0.001, " grey"), (0.4, "."))


def set_up(window: MainWindow) -> None:
    """One server runs, the other one has failed."""
    window.store.settings.change(
        tool_servers=(LOCAL, REMOTE),
        tool_grants=(
            ToolGrant(bound=bound_to(LOCAL), what="start"),
            ToolGrant(bound=bound_to(LOCAL), what="tool", tool="git_status"),
        ),
    )
    failed = ServerState(REMOTE.name, "failed", "The server does not answer.", "401 Unauthorized")
    window.store.show_tools(
        states={"git": ServerState("git", "on", version="2025-06-18"), REMOTE.name: failed},
        lists={"git": TOOLS},
        prices={"git": ToolPrice("git", 1234, 20, 1254, 60, 3100.0, 150.0)},
        questions={MessageId("t2"): ToolQuestion("git", "git_log", _ARGUMENTS)},
    )


_ARGUMENTS: Final = '{"repo_path": "/home/me/a b", "max_count": 10, "start_timestamp": "2025-01-01T00:00:00Z"}'


def calls() -> tuple[Message, ...]:
    """A call that has ended, and one that waits for a person."""
    done = ToolUse("git", "git_log", _ARGUMENTS, 1400, 321)
    return (
        message("q", "user", "What has changed?"),
        message("a", "assistant", "I look.", stats=STATS),
        replace(message("t1", "tool", "commit 1: Begin\ncommit 2: Go on"), use=done),
        replace(message("t2", "tool", "", "streaming"), use=ToolUse("git", "git_log", _ARGUMENTS)),
    )


def answer() -> Message:
    """An answer with its probabilities."""
    tokens = [
        TokenLogprobs(
            chosen := prob(i, p, piece),
            (
                chosen,
                prob(100 + i, p / 2, " one"),
                prob(200 + i, p / 3, " " * 80),
                prob(300 + i, p / 4, "<end_of_turn>", hidden=True),
            ),
            1,
        )
        for i, (p, piece) in enumerate(PIECES)
    ]
    text = "".join(piece for _, piece in PIECES)
    ids = tuple(range(len(PIECES)))
    return replace(message("a", "assistant", text, stats=STATS), tokens=ids, probabilities=pack(tokens))


def tools(window: MainWindow) -> Iterator[tuple[str, QWidget]]:
    """Servers in the settings, consent, the choice of a chat, calls; then colours of an answer, one token opened."""
    set_up(window)
    window.action_set.run("app.tools")
    settings = window.rooms.settings
    settings.tools.rows["git"].fold.button.setChecked(True)
    settings.tools.form.button.setChecked(True)
    yield "Settings, tools", window
    window.rooms.show_chats()
    for server in (LOCAL, REMOTE):
        dialog = ConsentDialog(window.theme, window, server)
        dialog.bring_up()
        yield f"Consent, {server.name}", dialog
        dialog.reject()
    sign_in = SignInDialog(window.theme, window, REMOTE.name, "https://accounts.example/oauth2/authorize?state=1")
    sign_in.bring_up()
    yield "Sign in", sign_in
    sign_in.reject()
    show_messages(window, ONE, calls())
    choice = window.chat.header.tools_choice
    choice.choose()
    yield "Tools of a chat", choice
    choice.close()
    for call in window.findChildren(ToolMessage):
        call.fold.button.setChecked(True)
    yield "Calls of tools", window
    window.store.settings.change(token_probabilities=True)
    show_messages(window, ONE, (message("q", "user", "Why?"), answer()))
    window.chat.view.widgets[-1].show_token(3)
    yield "A token", window
    window.store.settings.change(token_probabilities=False)
