"""`GET /kv/map` and `GET /kv/events`: the cache, and what happens to it, as another kvdesk takes it over; `GET
/kv/score`: what it saved a client.

Events are those of the host, written by `kvdesk.protocol.wire`: first what is known now (model, context, texts of
tokens, a view, answers under way), then every event as it happens. Only for keys with the right to inspect.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kvdesk.host.joining import join
from kvdesk.protocol import wire
from kvdesk.protocol.messages import Event
from kvdesk.server.bridge import HostBridge
from kvdesk.server.service import Service, key_of, may_inspect
from kvdesk.server.streaming import EventStream, sse

PACE_S: Final = 0.05
"""Events go out so often at most: of views and samples that came meanwhile the latest."""
QUIET_S: Final = 10.0
"""After so long without an event a comment is sent: who reads sees that the connection lives."""


async def kv_map(service: Service, http: Request) -> Response:
    """For another kvdesk: the cells as they are now. Needs an inspect key."""
    may_inspect(http)
    return JSONResponse(await cache_map(service.bridge))


async def kv_score(service: Service, http: Request) -> Response:
    """What the cache saved the requests of this key, and what they missed: tokens and seconds by cause. A key sent as
    `KEY~NAME` is KEY; its requests have their own score.
    """
    return JSONResponse(service.state.score(key_of(http).label).as_json())


async def kv_events(service: Service, http: Request) -> Response:
    """For another kvdesk: everything that happens to the cells, as server-sent events. Needs an inspect key."""
    may_inspect(http)
    return EventStream(event_stream(service.bridge), service.config.limits.write_s)


async def cache_map(bridge: HostBridge) -> dict[str, Any]:
    """What is known now, with the cells as they are."""
    view = await bridge.view()
    subscription = bridge.host.subscribe(lambda: None, known=True)
    try:
        events = subscription.take()
    finally:
        subscription.close()
    if view is None:
        events = [event for event in events if type(event).__name__ != "CacheView"]
    return {"events": [wire.to_json(Event, event) for event in events]}


async def event_stream(bridge: HostBridge) -> AsyncGenerator[bytes, None]:
    """Server-sent events without end. A reader that is too slow gets `SubscriptionDropped`, then everything again."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()

    def on_ready() -> None:
        try:
            loop.call_soon_threadsafe(ready.set)
        except RuntimeError:  # the loop is closed
            pass

    subscription = bridge.host.subscribe(on_ready, known=True)
    bridge.watch()
    bridge.on_over.add(ready.set)
    try:
        yield b": kvdesk\n\n"
        while not bridge.over:
            ready.clear()
            for event in join(subscription.take()):
                yield sse(wire.to_json(Event, event))
            try:
                async with asyncio.timeout(QUIET_S):
                    await ready.wait()
            except TimeoutError:
                yield b": quiet\n\n"
            await asyncio.sleep(PACE_S)
    finally:
        bridge.on_over.discard(ready.set)
        subscription.close()
        bridge.unwatch()
