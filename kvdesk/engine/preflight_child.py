"""The child of a preflight: loads the model, makes a small context, renders the template, decodes one token.

Owns nothing that outlives it; may die of anything. `kvdesk.library.preflight` starts it and reads its one line of JSON.
"""

from __future__ import annotations

import faulthandler
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kvdesk.chat import ConversationId, Message, MessageId
from kvdesk.errors import KvdeskError, TemplateError
from kvdesk.settings import ContextSettings

if TYPE_CHECKING:
    from kvdesk.engine.model import Model


def child_main(argv: Sequence[str]) -> int:
    """`argv`: file, bytes of address space, settings as JSON. Returns 0 when the model works, 2 when it does not."""
    try:
        file, memory_bytes, settings = argv
        _limit_memory(int(memory_bytes))
        wanted = ContextSettings.model_validate_json(settings)
    except ValueError as error:  # pydantic's error is one
        sys.stderr.write(f"usage: kvdesk --preflight FILE BYTES SETTINGS ({error})\n")
        return 2
    faulthandler.enable()
    try:
        answer = {"ok": True, "template_problem": _try(Path(file), wanted)}
    except KvdeskError as error:
        answer = {"ok": False, "sentence": str(error), "detail": error.detail}
    except MemoryError:
        answer = {"ok": False, "sentence": f"{Path(file).name} needs more memory than a model of its size should."}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    return 0 if answer["ok"] else 2


def _try(file: Path, settings: ContextSettings) -> str:
    """What is wrong with the chat template; empty when nothing is. Raises KvdeskError when the model does not work."""
    from kvdesk.cache.batch import Batch
    from kvdesk.engine.context import Context
    from kvdesk.engine.model import Model

    model = Model(file)
    context = Context(model, settings, inspect=False)
    token = max(0, model.vocab.bos)
    context.decode(Batch.of(0, 0, (token,), "last"))
    problem = _template_problem(model) if model.vocab.has_text else ""
    context.close()
    model.close()
    return problem


def _template_problem(model: Model) -> str:
    from kvdesk.engine.prompt import PromptBuilder

    message = Message(MessageId("1"), ConversationId("1"), None, "user", "Hello")
    try:
        PromptBuilder(model.vocab, model.chat_template).tokens([message])
    except TemplateError as error:
        return str(error)
    return ""


def _limit_memory(n_bytes: int) -> None:
    """An address space limit where the system has one; no core file for a death that is expected."""
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
