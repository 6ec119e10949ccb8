"""Why a request reuses so much of what its conversation had in the cache, as a sentence."""

from __future__ import annotations

from kvdesk.backends.local.cache_manager.manager import Acquired, CacheManager
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.llama.model import Model
from kvdesk.cache.explain import Facts, explain
from kvdesk.cache.prefix import common_prefix
from kvdesk.chat import Message
from kvdesk.translation import tr


def reuse_reason(
    model: Model,
    cache_manager: CacheManager,
    sequence: CacheSequence,
    acquired: Acquired,
    held: list[int],
    prompt: list[int],
    messages: tuple[Message, ...],
) -> str:
    """Why the request reuses what was `acquired` of its prompt. Remembers the texts of its messages for the next one.

    held  token ids that the sequence had before; `prompt`: those of the request
    """
    texts = tuple(message.text for message in messages)
    changed = next((i for i, (a, b) in enumerate(zip(sequence.texts, texts, strict=False)) if a != b), -1)
    reused = len(sequence.tokens)
    common = common_prefix(held, prompt)
    began_again = reused == 0 and min(common, len(prompt) - 1) > 0
    facts = Facts(
        evicted=cache_manager.pop_eviction_reason(sequence.conversation),
        edited=_name_of(changed, messages) if changed >= 0 else "",
        thinking=changed < 0 and common < len(held) and any("</think>" in text for text in texts),
        window_lost=began_again and model.facts.n_swa > 0,
        recurrent=began_again and model.facts.n_swa == 0,
        taken=acquired.source,
        checkpoint=acquired.checkpoint,
    )
    cache_manager.set_texts(sequence, texts)
    return explain(held, prompt, model.vocab.label, facts, reused).sentence


def _name_of(changed: int, messages: tuple[Message, ...]) -> str:
    """What the message at this place is called."""
    return tr("the system prompt") if messages[changed].role == "system" else tr("message {n}").format(n=changed + 1)
