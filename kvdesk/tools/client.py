"""Runs tool servers: starts them, lists their tools, calls them and ends them, all on one event loop in one thread.

That thread imports `mcp`, which takes half a second, when the first server starts. Everything a server does arrives as
a value, through one callback on that thread.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from kvdesk import __version__
from kvdesk.message import storable
from kvdesk.settings import ToolServer
from kvdesk.tools import results, schemas
from kvdesk.tools.server_child import Start
from kvdesk.tools.servers import (
    CallEnded,
    Keys,
    ServerState,
    SignInAsked,
    State,
    Tool,
    ToolEvent,
    ToolServerError,
    ToolsListed,
    visible,
)
from kvdesk.translation import marked, tr

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp.client.auth import OAuthClientProvider

    from kvdesk.tools.transport import LocalServer
    from kvdesk.tools.web_server import WebServer

START_S: Final = 120.0
"""From the start of a server to its first answer: `npx` and `uvx` download it first."""
SIGN_IN_S: Final = 600.0
_LIST_S: Final = 30.0
_MOST_PAGES: Final = 50
_CLOSE_S: Final = 10.0
_MOST_SAID: Final = 400
_MOST_SHOWN: Final = 4000
_PARSE_ERROR: Final = -32700  # of JSON-RPC
_LISTED_AGAIN_S: Final = 1.0
"""Least time between two lists of tools, however often a server announces a change."""
_LISTENED_AGAIN_S: Final = 60.0
"""Most time until a lost subscription is opened again."""
_REFUSED: Final = {
    "sampling/createMessage": marked("It asked the model for an answer. kvdesk does not allow that."),
    "elicitation/create": marked("It asked you a question. kvdesk does not pass questions on."),
    "roots/list": marked("It asked which folders you use. kvdesk does not reveal them."),
}
_CHANGED: Final = "notifications/tools/list_changed"


Told = Callable[[ToolEvent], None]


class ToolClients:
    """Every method returns at once and may be called from any thread. Only `close` waits, for the servers to end."""

    def __init__(self, told: Told, keys: Keys) -> None:
        """told: called on the loop's thread; keys: read on other threads."""
        self._told, self._keys = told, keys
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._running: dict[str, _Running] = {}
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._lock = threading.Lock()

    def start(self, server: ToolServer, values: Mapping[str, str]) -> None:
        """Start or connect to a server; one with the same name is ended first. values: of its variables or headers."""
        self._do(self._start(server, values))

    def stop(self, name: str) -> None:
        """End a server; its calls fail."""
        if self._loop is not None:
            self._do(self._stop(name))

    def call(
        self, number: int, server: str, tool: str, arguments: Mapping[str, Any], seconds: float, most: int
    ) -> None:
        """Call a tool. `CallEnded` always follows, unless the call is cancelled. seconds: its limit; most: characters
        of the result.
        """
        self._do(self._begin_call(number, server, tool, arguments, seconds, most))

    def cancel(self, number: int) -> None:
        """End a call; no `CallEnded` follows."""
        if self._loop is not None:
            self._do(self._cancel(number))

    def close(self) -> None:
        """End all servers, and the thread."""
        with self._lock:
            loop, thread, self._loop = self._loop, self._thread, None
        if loop is None or thread is None:
            return
        with suppress(RuntimeError, TimeoutError):
            asyncio.run_coroutine_threadsafe(self._end_all(), loop).result(_CLOSE_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(2.0)

    # --- on the loop --------------------------------------------------------------------------------------------------

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._run, args=(self._loop,), name="kvdesk-tools", daemon=True)
                self._thread.start()
            asyncio.run_coroutine_threadsafe(work, self._loop)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        loop.close()

    async def _start(self, server: ToolServer, values: Mapping[str, str]) -> None:
        await self._stop(server.name)
        running = _Running(server, values, self._told, self._keys)
        self._running[server.name] = running
        running.begin()

    async def _stop(self, name: str) -> None:
        while (running := self._running.get(name)) is not None:
            await running.end()
            if self._running.get(name) is running:
                del self._running[name]

    async def _end_all(self) -> None:
        for task in list(self._calls.values()):
            task.cancel()
        await asyncio.gather(*(running.end() for running in self._running.values()))
        self._running.clear()

    async def _begin_call(
        self, number: int, server: str, tool: str, arguments: Mapping[str, Any], seconds: float, most: int
    ) -> None:
        self._calls[number] = asyncio.create_task(self._call(number, server, tool, arguments, seconds, most))

    async def _cancel(self, number: int) -> None:
        if (task := self._calls.pop(number, None)) is not None:
            task.cancel()

    async def _call(
        self, number: int, server: str, tool: str, arguments: Mapping[str, Any], seconds: float, most: int
    ) -> None:
        began = time.monotonic()
        running = self._running.get(server)
        if running is None:
            text, failed = f"The server {server} does not run.", True
        else:
            text, failed = await running.call(tool, arguments, seconds)
        ms = round((time.monotonic() - began) * 1e3)
        if self._calls.pop(number, None) is not None:
            self._told(CallEnded(number, results.cut(text, most), failed, ms))


class _Running:
    """One server, in one task, which opens and closes its streams."""

    def __init__(self, server: ToolServer, values: Mapping[str, str], told: Told, keys: Keys) -> None:
        self._server, self._values, self._told, self._keys = server, values, told, keys
        self._client: Client | None = None
        self._inbound: LocalServer | WebServer | None = None
        self._ready = asyncio.Event()
        self._changed = asyncio.Event()
        self._auth: OAuthClientProvider | None = None
        self._refused: set[str] = set()
        self._last = ServerState(server.name)
        self._task: asyncio.Task[None] | None = None
        self._starting = asyncio.timeout(START_S)
        self._is_person_asked = self._is_ending = False

    def begin(self) -> None:
        self._task = asyncio.create_task(self._serve())

    async def end(self) -> None:
        """Returns when it has ended. The first call cancels: another one would break off what the end waits for."""
        if self._task is not None:
            if not self._is_ending:
                self._is_ending = True
                self._task.cancel()
            await asyncio.wait([self._task])

    async def call(self, tool: str, arguments: Mapping[str, Any], seconds: float) -> tuple[str, bool]:
        """What the model reads, and whether the call failed. Waits for a server that is still starting."""
        await self._ready.wait()
        client = self._client
        if client is None:
            return f"The server {self._server.name} does not run. {self._last.sentence}".strip(), True
        try:
            async with asyncio.timeout(seconds):
                found = await client.call_tool(tool, dict(arguments))
            return results.text_of(found.content, found.structured_content), bool(found.is_error)
        except TimeoutError:
            return f"The tool did not answer within {seconds:g} seconds.", True
        except Exception as error:  # noqa: BLE001 - whatever a server did, the model reads it
            return f"The tool failed: {self._why(error)}", True

    # --- inside -------------------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        self._say("starting")
        try:
            async with AsyncExitStack() as stack:
                try:
                    async with self._starting:
                        client = await self._connected(stack)
                        await self._list(client)
                except TimeoutError:
                    late = tr("It did not answer within {n} seconds.").format(n=f"{START_S:g}")
                    raise ToolServerError(
                        tr("You did not sign in in time.") if self._is_person_asked else late
                    ) from None
                self._client = client
                self._say("on", version=client.protocol_version)
                self._ready.set()
                listening = asyncio.create_task(self._listen(client))
                try:
                    await self._follow(client)
                finally:
                    listening.cancel()
        except asyncio.CancelledError:
            self._say("off")
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a server did: it is said
            detail = self._inbound.detail if self._inbound is not None else ""
            self._say("failed", self._why(error), _shown(detail or str(_first(error))))
        finally:
            self._client = None
            self._ready.set()

    async def _connected(self, stack: AsyncExitStack) -> Client:
        try:
            import mcp.client
            from mcp.types import Implementation
        except ImportError:
            raise ToolServerError(tr("The package mcp is not installed: pip install 'kvdesk[tools]'.")) from None

        server = self._server
        if server.url:
            from kvdesk.tools.sign_in import signing_in
            from kvdesk.tools.web_server import WebServer

            has_key = any(name.lower() == "authorization" for name in self._values)
            if not has_key:
                self._auth = await signing_in(stack, server.url, self._keys, self._ask_to_sign_in)
            self._inbound = WebServer(server.url, self._values, self._heard, self._auth)
        else:
            from kvdesk.tools.transport import LocalServer

            self._inbound = LocalServer(Start(server.command, server.args, server.folder, self._values), self._heard)
        client = mcp.client.Client(
            self._inbound.streams(),
            client_info=Implementation(name="kvdesk", version=__version__),
            message_handler=self._on_message,
            cache=None,
        )
        return await stack.enter_async_context(client)

    async def _list(self, client: Client) -> None:
        found: dict[str, Tool] = {}
        cursor: str | None = None
        async with asyncio.timeout(_LIST_S):
            for _ in range(_MOST_PAGES):
                page = await client.list_tools(cursor=cursor)
                for one in page.tools:
                    tool = schemas.taken(one.name, one.description, one.input_schema)
                    if tool is not None and len(found) < schemas.MOST_TOOLS:
                        found.setdefault(tool.name, tool)
                cursor = page.next_cursor
                if not cursor or len(found) >= schemas.MOST_TOOLS:
                    break
        self._told(ToolsListed(self._server.name, tuple(found.values())))

    async def _follow(self, client: Client) -> None:
        """Wait until the server ends, and list its tools again when they change. Raises ToolServerError at the end."""
        assert self._inbound is not None
        ended = self._inbound.ended
        while True:
            waits = [asyncio.ensure_future(one.wait()) for one in (self._changed, ended)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in waits:
                    one.cancel()
            if ended.is_set():
                raise ToolServerError(tr("It has ended."))
            self._changed.clear()
            try:
                await self._list(client)
            except TimeoutError:
                changed = tr("Its tools have changed, but it does not list them.")
                self._say("on", changed, version=client.protocol_version)
            await asyncio.sleep(_LISTED_AGAIN_S)

    async def _listen(self, client: Client) -> None:
        """Subscribe to changes of the list. Servers before 2026-07-28 announce them unasked (`_on_message`)."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        pause, has_lost = _LISTED_AGAIN_S, False
        while True:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    if has_lost:
                        self._changed.set()  # there is no replay
                    async for _change in changes:
                        self._changed.set()
                return  # the server closed it: it changes no more
            except SubscriptionLost:
                has_lost = True
            except (ListenNotSupportedError, MCPError, TimeoutError):
                if not has_lost:
                    return  # it offers none; later the connection may be down for a while
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LISTENED_AGAIN_S)

    async def _on_message(self, message: object) -> None:
        if getattr(message, "method", "") == _CHANGED:
            self._changed.set()

    def _ask_to_sign_in(self, address: str) -> None:
        """The time limit is extended: signing in takes as long as the person does."""
        self._is_person_asked = True
        with suppress(RuntimeError):  # it runs already, and asks again
            self._starting.reschedule(asyncio.get_running_loop().time() + SIGN_IN_S)
        waits = tr("It is waiting for you to sign in with your browser.")
        self._say(self._last.state, waits, version=self._last.version)
        self._told(SignInAsked(self._server.name, address))

    def _heard(self, method: str) -> None:
        """The server asked for something. It gets an error, and the person reads once what it wanted."""
        if method in _REFUSED and method not in self._refused:
            self._refused.add(method)
            self._say(self._last.state, tr(_REFUSED[method]), version=self._last.version)

    def _why(self, error: BaseException) -> str:
        """A sentence. A protocol error is not quoted, because the server decides how long it is."""
        error = _first(error)
        if self._inbound is not None and (known := self._inbound.why(error)):
            return known
        if isinstance(error, ValidationError) or getattr(error, "code", 0) == _PARSE_ERROR:
            return tr("It violates the protocol.")
        said = " ".join(_shown(str(error)[:_MOST_SAID]).split()) or type(error).__name__
        return said if said.endswith((".", "!", "?", "。")) else f"{said}."

    def _say(self, state: State, sentence: str = "", detail: str = "", version: str = "") -> None:
        signed_in = self._auth is not None and self._auth.context.current_tokens is not None
        self._last = ServerState(self._server.name, state, sentence, detail, version, signed_in)
        self._told(self._last)


def _first(error: BaseException) -> BaseException:
    """The exception of a group that has a sentence of ours, else the first one."""
    while isinstance(error, BaseExceptionGroup):
        error = (error.subgroup(ToolServerError) or error).exceptions[0]
    return error


def _shown(text: str) -> str:
    """Text from a server, made readable and safe to show."""
    return "\n".join(map(visible, storable(text[:_MOST_SHOWN]).splitlines())).strip()
