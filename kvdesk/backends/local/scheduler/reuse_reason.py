"""Why a request reuses so much of what its conversation had in the cache, as a sentence."""

from __future__ import annotations

from typing import Final

from kvdesk.backends.local.cache_manager.manager import CacheManager
from kvdesk.backends.local.cache_manager.saved_states import SavedState
from kvdesk.backends.local.cache_manager.sequences import Acquired, CacheSequence
from kvdesk.backends.local.llama.model import Model
from kvdesk.cache.explain import Facts, explain
from kvdesk.cache.prefix import common_prefix
from kvdesk.cache.usual_causes import AROUND, usual_cause
from kvdesk.chat import Message
from kvdesk.protocol.chat import Generate
from kvdesk.reasoning import parts_of
from kvdesk.translation import tr

FEW_ALIKE: Final = 5
"""Tokens at the beginning that two prompts of one program have in common, beside what a template writes, where one is
compared with the other."""


def reuse_reason(
    model: Model,
    cache_manager: CacheManager,
    sequence: CacheSequence,
    acquired: Acquired,
    held: list[int],
    prompt: list[int],
    command: Generate,
) -> str:
    """Why the request reuses what was `acquired` of its prompt. Remembers the texts of its messages for the next one.

    held  token ids that the sequence had before; `prompt`: those of the request. Another program's request is compared
          with the one whose cells it shares: it has nothing of its own before, and its client sent both, as a rule
    """
    messages = command.messages if command.continued is None else (*command.messages, command.continued)
    texts, before, source = tuple(message.text for message in messages), sequence.texts, acquired.source
    alike = None
    if command.client is not None and acquired.held:
        held, before, source = list(acquired.held), acquired.texts, ""
    elif command.client is not None and not held and (alike := _alike(cache_manager, sequence, prompt)) is not None:
        held, before = list(alike.tokens), alike.texts
    changed = next((i for i, (a, b) in enumerate(zip(before, texts, strict=False)) if a != b), -1)
    reused = len(sequence.tokens)
    common = common_prefix(held, prompt)
    block = cache_manager.block
    reuses = alike is None and (command.client is None or command.client.reuse)  # what is alike was never to be shared
    began_again = reuses and reused == 0 and min(common, len(prompt) - 1) >= block
    cause = ""
    if command.client is not None and common < min(len(held), len(prompt)):
        around = slice(max(0, common - AROUND), common + AROUND)
        cause = usual_cause(*("".join(map(model.vocab.label, tokens[around])) for tokens in (held, prompt)))
        if cause and changed >= 0 and messages[changed].role == "assistant":
            changed = -1  # what differs first comes before: with other tools an answer is not known as it was written
    facts = Facts(
        evicted=cache_manager.pop_eviction_reason(sequence.conversation),
        edited=_name_of(changed, messages) if changed >= 0 else "",
        thinking=changed < 0 and common < len(held) and any(map(_has_reasoning, messages)),
        window_lost=began_again and model.facts.n_swa > 0,
        recurrent=began_again and model.facts.n_swa == 0,
        taken=source,
        checkpoint=acquired.checkpoint,
        block=block if block > 1 and reused < min(common, len(prompt) - 1) else 0,
    )
    cache_manager.set_texts(sequence, texts)
    explanation = explain(held, prompt, model.vocab.label, facts, reused)
    return " ".join(part for part in (explanation.sentence, cause if explanation.position >= 0 else "") if part)


def _has_reasoning(message: Message) -> bool:
    found = parts_of(message.text, message.marks) if message.role == "assistant" else None
    return found is not None and found.thought_end > found.thought


def _alike(
    cache_manager: CacheManager, sequence: CacheSequence, prompt: list[int]
) -> CacheSequence | SavedState | None:
    """What an earlier request of the same program holds, in the cache or saved, whose beginning is most like the
    prompt, where it is at all: so little that it was not worth sharing.
    """
    client, most, found = sequence.client, FEW_ALIKE - 1, None
    if client is None:
        return None
    theirs: list[CacheSequence | SavedState] = [
        other
        for other in cache_manager.pool
        if other is not sequence and other.client is not None and other.client.program == client.program
    ]
    theirs += cache_manager.swapper.saved_states.of_client(client)
    for other in theirs:
        n = common_prefix(list(other.tokens), prompt)
        if n > most:
            most, found = n, other
    return found


def _name_of(changed: int, messages: tuple[Message, ...]) -> str:
    """What the message at this place is called."""
    return tr("the system prompt") if messages[changed].role == "system" else tr("message {n}").format(n=changed + 1)
