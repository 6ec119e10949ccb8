"""`POST /slots/N?action=save|restore|erase` in llama-server's shape: a slot is a sequence. It concerns what others
asked: only for keys with the right to inspect.
"""

import re
from pathlib import Path
from typing import Any, Final, Literal, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kvdesk.message import new_conversation_id
from kvdesk.protocol.cache import TransferSequence
from kvdesk.server.errors import ApiError, invalid
from kvdesk.server.request.schemas import Body
from kvdesk.server.service import Service, may_inspect

_NAME: Final = re.compile(r"(?!.*\.\.)[\w][\w .()+=,@-]{0,199}(?<![ .])")
"""Of a file, without a folder: the same on every system."""
_DEVICES: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_ACTIONS: Final = ("save", "restore", "erase")


class FileRequest(Body):
    """`/slots/{slot}`: the body of save and restore."""

    filename: str


async def slot_action(service: Service, http: Request) -> Response:
    """As llama-server has it, with `action` save, restore or erase: the state of a sequence to or from a file in the
    folder of `--slot-save-path`, in llama-server's form. Needs an inspect key.
    """
    may_inspect(http)
    given, action = http.path_params["slot"], http.query_params.get("action", "")
    if action not in _ACTIONS:
        raise invalid("action", "must be save, restore or erase")
    slot = next((n for n in range(service.state.n_parallel) if str(n) == given), None)
    if slot is None:
        raise invalid("slot", f"there is none {given[:100]}")
    asked = TransferSequence(
        cast("Literal['save', 'restore', 'erase']", action),
        slot,
        None if action == "erase" else await _path(service, http),
        new_conversation_id(),
        service.client(http, reuse=True),
    )
    found = await service.bridge.transferred(asked)
    if asked.path is None:
        return JSONResponse({"id_slot": slot, "n_erased": found.n_tokens})
    n_tokens, n_bytes = ("n_saved", "n_written") if action == "save" else ("n_restored", "n_read")
    whole: dict[str, Any] = {"id_slot": slot, "filename": asked.path.name}
    whole |= {n_tokens: found.n_tokens, n_bytes: found.n_bytes, "timings": {f"{action}_ms": found.ms}}
    return JSONResponse(whole)


async def _path(service: Service, http: Request) -> Path:
    """Of the file. Raises ApiError."""
    folder = service.config.slot_folder
    if folder is None:
        said = "Slots are not saved here: start the server with --slot-save-path."
        raise ApiError(501, said, code="not_supported")
    name = (await service.body(http, FileRequest)).filename
    if not _NAME.fullmatch(name) or _DEVICES.fullmatch(name):
        raise invalid("filename", "must be a file name of at most 200 letters, digits, blanks and . _ - ( ) + = , @")
    return folder / name
