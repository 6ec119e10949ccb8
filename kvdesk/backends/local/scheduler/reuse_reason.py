"""Explains how much a request reuses of its conversation's cells: a sentence, and the cost."""

from collections.abc import Sequence
from typing import Final

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.saved_state import SavedState, fingerprint
from kvdesk.backends.local.cache_manager.sequences import Acquired, CacheSequence
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.prompt.prompt import Place
from kvdesk.cache.reuse.explain import Cause, Facts, explain
from kvdesk.cache.reuse.prefix import common_prefix, read_again
from kvdesk.cache.reuse.score import NOT_SHARED
from kvdesk.cache.reuse.usual_causes import AROUND, UsualCause, cause_in_answer, usual_cause
from kvdesk.message import Message
from kvdesk.protocol.chat import Generate, ReuseReason
from kvdesk.reasoning import parts_of
from kvdesk.translation import tr
from kvdesk.values import replace

FEW_ALIKE: Final = 5
"""Tokens at the beginning, besides the template's, that two prompts of a program must share to be compared."""
_IN_ANSWER: Final = 200
"""Tokens of an earlier answer after the first difference, to see how it was written again."""


def reuse_reason(
    model: Model,
    cache_manager: Cache,
    sequence: CacheSequence,
    acquired: Acquired,
    held: list[int],
    prompt: list[int],
    places: Sequence[Place],
    command: Generate,
    n_put: int = 0,
) -> ReuseReason:
    """Why the request reuses what was `acquired` of its prompt. Stores fingerprints of its tools and of its messages'
    texts for the next one.

    held  token ids that the sequence had before; `prompt`: those of the request, with the `places` of its messages.
          Another program's request has no earlier sequence. It is compared with the one whose cells it shares, because
          its client usually sent both
    n_put as in `Facts`
    """
    messages = command.messages if command.continued is None else (*command.messages, command.continued)
    texts = tuple(map(fingerprint, (command.tools, *(message.text for message in messages))))
    before, source = sequence.texts, acquired.source
    alike = None
    if command.client is not None and acquired.held:
        held, before, source = list(acquired.held), acquired.texts, ""
    elif command.client is not None and not held and (alike := _alike(cache_manager, sequence, prompt)) is not None:
        held, before = list(alike.tokens), alike.texts
    changed = next((i for i, (a, b) in enumerate(zip(before[1:], texts[1:], strict=False)) if a != b), -1)
    reused = len(sequence.tokens)
    common = common_prefix(held, prompt)
    block = cache_manager.block
    reuses = alike is None and (command.client is None or command.client.reuse)  # similar prompts were not to be shared
    began_again = reuses and reused == 0 and min(common, len(prompt) - 1) >= block
    cause = None
    if command.client is not None and common < min(len(held), len(prompt)):
        at, first = _answer_at(common, places, messages)
        if at < 0:
            other_tools = bool(before) and before[0] != texts[0]
            cause = _cause_outside_answers(model, held, prompt, common, places, other_tools=other_tools)
        else:
            written = (_text_of(model, tokens[first : common + _IN_ANSWER]) for tokens in (held, prompt))
            cause = cause_in_answer(*written)
        if at >= 0:
            changed = -1 if cause else at
        elif cause is UsualCause.TOOLS or (cause and changed >= 0 and messages[changed].role == "assistant"):
            changed = -1  # the first difference comes before: with other tools an answer is not known as it was written
    facts = Facts(
        evicted=cache_manager.pop_eviction_reason(sequence.conversation),
        edited=_name_of(changed, messages) if changed >= 0 else "",
        thinking=changed < 0 and common < len(held) and any(map(_has_reasoning, messages)),
        window_lost=began_again and model.facts.n_swa > 0,
        recurrent=began_again and model.facts.n_swa == 0,
        taken=source,
        checkpoint=acquired.checkpoint,
        block=block if block > 1 and reused < min(common, len(prompt) - 1) else 0,
        n_put=n_put,
    )
    cache_manager.set_texts(sequence, texts)
    explanation = explain(held, prompt, model.vocab.label, facts, reused)
    usual = cause.sentence if cause is not None and explanation.position >= 0 else ""
    sentence = " ".join(part for part in (explanation.sentence, usual) if part)
    is_shared = command.client is None or command.client.reuse
    named = (cause or explanation.cause).value if is_shared else NOT_SHARED
    reason = ReuseReason(sentence, cause=named, at_token=explanation.position)
    if command.client is None or not (n_again := read_again(held, prompt, reused)):
        return reason
    is_other = cause is None and explanation.cause in (Cause.EDITED, Cause.UNKNOWN)
    if is_shared and is_other and 2 * n_again < explanation.lost:
        return reason  # another conversation of the program that quotes the same texts
    return replace(reason, reread_tokens=n_again, miss=named)


def _cause_outside_answers(
    model: Model, held: list[int], prompt: list[int], common: int, places: Sequence[Place], *, other_tools: bool
) -> UsualCause | None:
    """If token `common` is in the text of a message, only that text shows the cause; otherwise, where other tools
    appear, the cause is the tools.
    """
    first, end = max(0, common - AROUND), common + AROUND
    if (place := next((place for place in places if place.first <= common < place.end), None)) is not None:
        first, end = max(first, place.first), min(end, place.end)
    elif other_tools:
        return UsualCause.TOOLS
    return usual_cause(_text_of(model, held[first:end]), _text_of(model, prompt[first:end]))


def _text_of(model: Model, tokens: Sequence[int]) -> str:
    return "".join(map(model.vocab.label, tokens))


def _answer_at(common: int, places: Sequence[Place], messages: Sequence[Message]) -> tuple[int, int]:
    """The answer that contains token `common` of the prompt, and where it begins; (-1, 0) if none does. An answer that
    only calls tools has no place: it lies between those of its neighbours.
    """
    index = {message.id: i for i, message in enumerate(messages)}
    before = max((place for place in places if place.first <= common), key=lambda p: p.first, default=None)
    if before is None:
        return -1, 0
    last = index[before.message]
    if common < before.end or messages[last].role == "assistant":
        return (last, before.first) if messages[last].role == "assistant" else (-1, 0)
    after = last + 1
    is_call = after < len(messages) and messages[after].role == "assistant" and '"tool_calls"' in messages[after].fields
    return (after, before.end) if is_call else (-1, 0)


def _has_reasoning(message: Message) -> bool:
    found = parts_of(message.text, message.marks) if message.role == "assistant" else None
    return found is not None and found.thought_end > found.thought


def _alike(cache_manager: Cache, sequence: CacheSequence, prompt: list[int]) -> CacheSequence | SavedState | None:
    """The cells or state of an earlier request of the same program whose beginning is most similar to the prompt, if
    any is; too little of it was worth sharing.
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
    """The name of the message at this index."""
    return tr("the system prompt") if messages[changed].role == "system" else tr("message {n}").format(n=changed + 1)
