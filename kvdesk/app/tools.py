"""Tools for the chats: servers as a user set them up, consent, and calls.

The toolbox of the conversations (`kvdesk.conversations.toolbox`). Servers run in `kvdesk.tools.client`, which tells
on its own thread; everything here is on the window's.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices

from kvdesk import paths
from kvdesk.app.background import CLOSE_S, Background
from kvdesk.app.tool_prices import ToolPrices
from kvdesk.chat import Conversation
from kvdesk.conversations.service import ConversationService
from kvdesk.conversations.toolbox import PendingCall, ToolResult
from kvdesk.errors import KvdeskError, UserError
from kvdesk.message import ConversationId, MessageId
from kvdesk.protocol.prompt import PriceTools
from kvdesk.session.features import ToolCommands, ToolDecision
from kvdesk.session.state import ToolQuestion
from kvdesk.settings import ToolGrant, ToolServer
from kvdesk.store import tool_lists
from kvdesk.store.server_keys import ServerKeys
from kvdesk.tools import config, schemas
from kvdesk.tools.schemas import Offer
from kvdesk.tools.servers import (
    CallEnded,
    ServerState,
    SignInAsked,
    Tool,
    ToolEvent,
    ToolsListed,
    bound_to,
    is_granted,
    secret_of,
    tokens_of,
    visible,
)
from kvdesk.translation import plural, tr
from kvdesk.ui.tools.words import changed_text

if TYPE_CHECKING:
    from kvdesk.tools.client import ToolClients
    from kvdesk.ui.shell.main_window import MainWindow
    from kvdesk.ui.tools.consent_dialog import ConsentDialog

DENIED: Final = "The person did not allow this call."
NOT_STARTED: Final = "The person did not allow the server of this tool to be started."
"""What the model reads in the place of a result. English, as all that it reads."""
MOST_SERVERS: Final = 100


class Tools(QObject, ToolCommands):
    """`converse` is called once the conversations exist."""

    _service: ConversationService
    _told = Signal(object)

    def __init__(self, window: MainWindow, keys: ServerKeys, submit: Callable[[PriceTools], None]) -> None:
        super().__init__(window)
        self._window, self._session, self._keys = window, window.store, keys
        self._settings = window.store.settings
        self._clients: ToolClients | None = None
        self._background = Background("tools", self)
        self._file = paths.data_dir() / "tools.json"
        self._lists = tool_lists.read(self._file) if self._settings.current.tool_servers else {}
        self._calls: dict[MessageId, PendingCall] = {}
        self._waiting: dict[str, list[MessageId]] = {}  # calls whose server may not start yet
        self._questions: dict[str, ConsentDialog] = {}  # whether one may start, by what it is bound to
        self._running: dict[int, MessageId] = {}
        self._fetching: dict[str, list[Callable[[], None]]] = {}  # servers that wait for keys, and their calls
        self._numbers = itertools.count(1)
        self._leaving: dict[str, ToolServer] = {}  # those whose tokens are deleted once they have ended
        self.prices = ToolPrices(self, window.store, submit, lambda names: self._offer_of(names).text)
        self._told.connect(self._on_told, Qt.ConnectionType.QueuedConnection)
        window.commands.tools = self
        self.destroyed.connect(self._settings.listen(self._on_settings_changed))
        self._show_lists()

    def converse(self, service: ConversationService) -> None:
        """The conversations that have the tools."""
        self._service = self.prices.service = service

    # --- toolbox ------------------------------------------------------------------------------------------------------

    def offered(self, conversation: Conversation) -> str:
        return self._offer(conversation).text

    def server_of(self, conversation: Conversation, tool: str) -> str:
        return self._offer(conversation).tools.get(tool, ("", ""))[0]

    def begin(self, call: PendingCall) -> None:
        """Ask if that is needed, then run it."""
        known = self._service.get(call.conversation)
        offer = self._offer(known) if known is not None else Offer()
        name, tool = offer.tools.get(call.tool, ("", ""))
        server = self._server(name)
        if server is None:
            self._end(call.message, f"There is no tool {call.tool}.")
        elif _arguments(call.arguments) is None:
            self._end(call.message, "The arguments are no JSON object.")
        else:
            self._calls[call.message] = call
            if is_granted(self._settings.current.tool_grants, server, tool):
                self._run(call.message)
            else:
                question = ToolQuestion(name, tool, call.arguments)
                self._session.show_tools(questions={**self._session.tool_questions, call.message: question})
                if known is not None and call.conversation != self._session.selected:
                    asks = tr("“{title}” asks whether it may call {tool}.")
                    self._session.notify(asks.format(title=known.title or tr("New chat"), tool=tool), "warning")

    def cancel(self, message: MessageId) -> None:
        self._forget_question(message)
        self._calls.pop(message, None)
        for number in [number for number, of in self._running.items() if of == message]:
            del self._running[number]
            self._servers.cancel(number)

    # --- commands -----------------------------------------------------------------------------------------------------

    def decide(self, message: MessageId, decision: ToolDecision) -> None:
        question = self._session.tool_questions.get(message)
        if question is None or message not in self._calls:
            return
        self._forget_question(message)
        if decision == "deny":
            self._end(message, DENIED)
            return
        server = self._server(question.server)  # None: it was removed meanwhile
        if server is not None and decision == "tool":
            self._grant(ToolGrant(bound=bound_to(server), what="tool", tool=question.tool))
        elif server is not None and decision == "server":
            self._grant(ToolGrant(bound=bound_to(server), what="server"))
        self._run(message)

    def start(self, name: str) -> None:
        """With consent: a local server is a program of somebody else's."""
        server = self._server(name)
        if server is None or self._state(name) in ("starting", "on"):
            return
        if is_granted(self._settings.current.tool_grants, server):
            self._start(server)
            return
        from kvdesk.ui.tools.consent_dialog import ConsentDialog

        dialog = self._questions.get(bound_to(server))
        if dialog is None:
            dialog = self._questions[bound_to(server)] = ConsentDialog(self._window.kit.theme, self._window, server)
            dialog.answered.connect(partial(self._on_consent, server))
        dialog.bring_up()

    def stop(self, name: str) -> None:
        if (waiting := self._fetching.pop(name, None)) is not None:
            self._on_told(ServerState(name))
            for call in waiting:
                call()
        elif self._clients is not None:
            self._clients.stop(name)

    def sign_out(self, name: str) -> None:
        """A server that runs could keep another token meanwhile: it is ended first."""
        server = self._server(name)
        if server is None:
            return
        self._leaving[name] = server
        if self._state(name) in ("starting", "on"):
            self.stop(name)
        else:
            self._delete_tokens(name)

    def add(self, server: ToolServer, values: Mapping[str, str]) -> None:
        others = tuple(one for one in self._settings.current.tool_servers if one.name != server.name)
        self._settings.change(tool_servers=(*others, server)[-MOST_SERVERS:])
        if values:
            secret, text = secret_of(server), json.dumps(dict(values))
            self._keys.use(secret, text)
            self._keep(secret, text)

    def forget(self, name: str) -> None:
        server = self._server(name)
        if server is None:
            return
        self.sign_out(name)
        now, bound = self._settings.current, bound_to(server)
        self._settings.change(
            tool_servers=tuple(one for one in now.tool_servers if one.name != name),
            tool_grants=tuple(grant for grant in now.tool_grants if grant.bound != bound),
        )
        self._keep(secret_of(server), "")

    def import_file(self, path: Path) -> None:
        """Nothing of it is started."""
        known = self._settings.current.tool_servers
        try:
            found = config.read(path, frozenset(server.name for server in known))
        except UserError as error:
            self._session.notify(str(error), "danger")
            return
        there = {bound_to(server) for server in known}
        new = [one for one in found if bound_to(one.server) not in there]
        for one in new:
            self.add(one.server, one.values)
        n = len(new)
        said = plural("1 server was added. It is off.", "%n servers were added. They are off.", n)
        self._session.notify(said if n else tr("All servers in this file already exist."), "good" if n else "")

    def leave_out(self, name: str, tools: tuple[str, ...]) -> None:
        self._change_server(name, left_out=tuple(sorted(tools)))

    def revoke(self, grant: ToolGrant) -> None:
        self._settings.change(tool_grants=tuple(g for g in self._settings.current.tool_grants if g != grant))

    def switch(self, conversation: ConversationId, name: str, *, on: bool) -> None:
        """A server that is not known yet is started, which asks."""
        known = self._service.get(conversation)
        if known is None:
            return
        names = set(known.tools) - {name} | ({name} if on else set())
        self._service.choose_tools(conversation, tuple(sorted(names)))
        if on and name not in self._session.tool_lists:
            self.start(name)
        self._measure()

    # --- events -------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End all servers, and hear no more of them. Waits for that, and for keys that are being kept or deleted."""
        self._running.clear()
        self._fetching.clear()
        if self._clients is not None:
            self._clients.close()
        for name in tuple(self._leaving):
            self._delete_tokens(name)
        self._background.wait(CLOSE_S)
        self._background.close(wait_s=0.0)

    @property
    def _servers(self) -> ToolClients:
        """Those that run; made when the first one is started, since the window does not wait for asyncio."""
        if self._clients is None:
            from kvdesk.tools.client import ToolClients

            self._clients = ToolClients(self._told.emit, self._keys)
        return self._clients

    def _on_told(self, event: ToolEvent) -> None:
        match event:
            case ServerState():
                self._session.show_tools(states={**self._session.tool_states, event.name: event})
                if event.signed_in:
                    self._remember_sign_in(event.name, signed_in=True)
                if event.state in ("off", "failed") and event.name in self._leaving:
                    self._delete_tokens(event.name)
            case ToolsListed():
                self._take_list(event)
            case SignInAsked():
                self._ask_to_sign_in(event)
            case CallEnded():
                if (message := self._running.pop(event.number, None)) is not None:
                    self._calls.pop(message, None)
                    self._service.tool_ended(message, ToolResult(event.text, event.ms, event.failed))

    def _take_list(self, listed: ToolsListed) -> None:
        server = self._server(listed.server)
        before = self._lists.get(bound_to(server)) if server is not None else None
        if server is None or before == listed.tools:
            return
        known = self._session.shown
        offered = self._offer(known).text if known is not None else ""
        self._lists = {**self._lists, bound_to(server): listed.tools}
        self._background.run(partial(tool_lists.write, self._file, self._lists))
        self._show_lists()
        self._measure()
        if before is not None and known is not None and (now := self._offer(known).text) != offered:
            self.prices.report(known, offered, now, changed_text(server.name, before, listed.tools))

    def _on_settings_changed(self, changed: frozenset[str]) -> None:
        if "tool_servers" in changed:
            self._show_lists()
            self._measure()

    def _on_consent(self, server: ToolServer, yes: bool, for_good: bool) -> None:
        self._questions.pop(bound_to(server), None)
        waiting, known = self._waiting.pop(server.name, []), self._server(server.name)
        if not yes or known is None or bound_to(known) != bound_to(server):
            for message in waiting:
                self._end(message, NOT_STARTED)
            return
        if for_good:
            self._grant(ToolGrant(bound=bound_to(server), what="start"))
        self._start(server)
        for message in waiting:
            self._call(message)

    def _ask_to_sign_in(self, asked: SignInAsked) -> None:
        from kvdesk.ui.tools.consent_dialog import SignInDialog

        def answered(yes: bool) -> None:
            if not yes or not QDesktopServices.openUrl(QUrl(asked.address)):
                self.stop(asked.server)

        dialog = SignInDialog(self._window.kit.theme, self._window, asked.server, asked.address)
        dialog.answered.connect(answered)
        dialog.bring_up()

    def _on_kept(self, sentence: str) -> None:
        if sentence:
            self._session.notify(sentence, "warning")

    def _keep(self, name: str, text: str) -> None:
        self._background.run(
            partial(self._keys.keep, name, text), self._on_kept, lambda error: self._on_kept(str(error))
        )

    # --- inside -------------------------------------------------------------------------------------------------------

    def _server(self, name: str) -> ToolServer | None:
        return next((one for one in self._settings.current.tool_servers if one.name == name), None)

    def _change_server(self, name: str, **what: object) -> None:
        servers = self._settings.current.tool_servers
        changed = (one.model_copy(update=what) if one.name == name else one for one in servers)
        self._settings.change(tool_servers=tuple(changed))

    def _remember_sign_in(self, name: str, *, signed_in: bool) -> None:
        server = self._server(name)
        if server is not None and server.signed_in != signed_in:
            self._change_server(name, signed_in=signed_in)

    def _delete_tokens(self, name: str) -> None:
        server = self._leaving.pop(name)
        if server.url:
            delete = partial(self._keys.keep, tokens_of(server.url), "")
            self._background.run(
                delete, partial(self._on_signed_out, name), lambda error: self._on_signed_out(name, str(error))
            )

    def _on_signed_out(self, name: str, problem: str) -> None:
        self._on_kept(problem)
        if self._server(name) is None:
            return  # it was removed
        self._remember_sign_in(name, signed_in=False)
        if not problem:
            said = tr("You are signed out of {name}: its token was deleted from the keyring.")
            self._session.notify(said.format(name=visible(name)), "good")

    def _state(self, name: str) -> str:
        known = self._session.tool_states.get(name)
        return known.state if known is not None else "off"

    def _offer(self, conversation: Conversation) -> Offer:
        return self._offer_of(conversation.tools) if conversation.tools else Offer()

    def _offer_of(self, names: tuple[str, ...]) -> Offer:
        lists = self._session.tool_lists
        return schemas.offer((name, self._kept(name, lists[name])) for name in names if name in lists)

    def _kept(self, name: str, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        server = self._server(name)
        left_out = server.left_out if server is not None else ()
        return tuple(tool for tool in tools if tool.name not in left_out)

    def _show_lists(self) -> None:
        servers = self._settings.current.tool_servers
        lists = {server.name: self._lists[bound] for server in servers if (bound := bound_to(server)) in self._lists}
        self._session.show_tools(lists=lists, prices={})
        self.prices.renew()

    def _grant(self, grant: ToolGrant) -> None:
        grants = self._settings.current.tool_grants
        if grant not in grants:
            self._settings.change(tool_grants=(*grants, grant))

    def _forget_question(self, message: MessageId) -> None:
        questions = dict(self._session.tool_questions)
        if questions.pop(message, None) is not None:
            self._session.show_tools(questions=questions)

    def _start(self, server: ToolServer) -> None:
        """Its keys may take a moment: a keyring may ask the user for its own."""
        self._session.show_tools(
            states={**self._session.tool_states, server.name: ServerState(server.name, "starting")}
        )
        if not (server.env or server.headers):
            self._servers.start(server, {})
            return
        waiting = self._fetching[server.name] = []
        self._background.run(
            partial(self._keys.get, secret_of(server)),
            partial(self._on_keys, server, waiting),
            partial(self._failed, server, waiting),
        )

    def _on_keys(self, server: ToolServer, waiting: list[Callable[[], None]], text: str) -> None:
        if self._fetching.get(server.name) is not waiting:
            return  # stopped meanwhile
        del self._fetching[server.name]
        self._servers.start(server, _texts(text))
        for call in waiting:
            call()

    def _failed(self, server: ToolServer, waiting: list[Callable[[], None]], error: KvdeskError) -> None:
        if self._fetching.get(server.name) is not waiting:
            return
        del self._fetching[server.name]
        self._on_told(ServerState(server.name, "failed", str(error), error.detail))
        for call in waiting:
            call()

    def _run(self, message: MessageId) -> None:
        """What may be run. Its server is started first, which may ask."""
        question = self._calls[message]
        known = self._service.get(question.conversation)
        name = self.server_of(known, question.tool) if known is not None else ""
        server = self._server(name)
        if server is None:
            self._end(message, f"There is no tool {question.tool}.")
        elif self._state(name) in ("on", "starting"):
            self._call(message)
        elif is_granted(self._settings.current.tool_grants, server):
            self._start(server)
            self._call(message)
        else:
            self._waiting.setdefault(name, []).append(message)
            self.start(name)

    def _call(self, message: MessageId) -> None:
        if (call := self._calls.get(message)) is None:
            return  # stopped meanwhile
        known, budget = self._service.get(call.conversation), self._settings.current.tools
        name, tool = (self._offer(known) if known is not None else Offer()).tools.get(call.tool, ("", ""))
        number = next(self._numbers)
        self._running[number] = message
        arguments = _arguments(call.arguments) or {}

        def send() -> None:
            if number in self._running:
                self._servers.call(number, name, tool, arguments, float(budget.call_s), budget.result_chars)

        if (waiting := self._fetching.get(name)) is not None:
            waiting.append(send)
        else:
            send()

    def _end(self, message: MessageId, why: str) -> None:
        self._calls.pop(message, None)
        self._service.tool_ended(message, ToolResult(why, failed=True))

    def _measure(self) -> None:
        self.prices.renew()
        if self._session.selected is not None:
            self._service.turns.measure(self._session.selected)


def _arguments(text: str) -> dict[str, object] | None:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _texts(text: str) -> dict[str, str]:
    found = _arguments(text) or {}
    return {name: value for name, value in found.items() if isinstance(value, str)}
