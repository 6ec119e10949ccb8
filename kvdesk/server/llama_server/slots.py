"""`GET /slots` in llama-server's shape (server-context.cpp, `server_slot::to_json`): a slot is a sequence."""

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kvdesk.protocol.cache import CacheView
from kvdesk.server.bridge import COUNTS_S
from kvdesk.server.service import Service, key_of
from kvdesk.server.state import ServerState


async def slots(service: Service, http: Request) -> Response:
    """As llama-server has it: the slots. A slot is a sequence of the cache."""
    view = await service.bridge.view(COUNTS_S)
    return JSONResponse(_slots(service.state, view, inspect=key_of(http).inspect))


def _slots(state: ServerState, view: CacheView | None, *, inspect: bool) -> list[dict[str, Any]]:
    """All sequences, used or not: counts. With the right to inspect also who asked, and for which conversation."""
    n_ctx = state.context.n_ctx_seq if state.context is not None else 0
    leases = {lease.seq_id: lease for lease in view.leases} if view is not None else {}
    cells = {int(span.seq_id): span for span in view.snapshot.sequences} if view is not None else {}
    found = []
    for seq_id in range(state.n_parallel if state.context is not None else 0):
        slot = state.slots.get(seq_id)
        one: dict[str, Any] = {
            "id": seq_id,
            "n_ctx": n_ctx,
            "speculative": state.counters.drafted > 0,
            "is_processing": slot is not None and slot.is_processing,
        }
        if slot is not None:
            one |= {
                "id_task": slot.task,
                "n_prompt_tokens": slot.n_prompt,
                "n_prompt_tokens_processed": slot.n_read,
                "n_prompt_tokens_cache": slot.n_cached,
                "next_token": [
                    {
                        "has_next_token": slot.is_processing,
                        "has_new_line": False,
                        "n_remain": -1,
                        "n_decoded": slot.n_decoded if slot.is_processing else 0,
                    }
                ],
            }
        if (span := cells.get(seq_id)) is not None:
            one |= {"kvdesk_cells": span.n_cells, "kvdesk_cells_shared": span.n_shared}
        if inspect and (lease := leases.get(seq_id)) is not None:
            one |= {"kvdesk_client": lease.client, "kvdesk_conversation": lease.conversation}
        found.append(one)
    return found
