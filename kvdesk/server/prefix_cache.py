"""What a request reused of the cache and why not more, as it goes out with the answer: an object beside `usage`, and a
header.

Texts of the cache may be another program's: `message` quotes them only for a key with the right to inspect.
"""

from collections.abc import Sequence
from typing import Any, Final

from kvdesk.cache.reuse.explain import counts_sentence
from kvdesk.cache.reuse.score import label_of
from kvdesk.protocol.chat import TurnStarted
from kvdesk.server.answering import Choice, timings, usage
from kvdesk.server.spans import Reused
from kvdesk.translation import tr

FIELD: Final = "prefix_cache"
HEADER: Final = b"x-kvdesk-prefix-cache"


def prefix_cache(choice: Choice) -> dict[str, Any]:
    """The object under its name; {} if the back end does not report it.

    reused, read  tokens of the prompt that the cache had, and those that were computed
    at_token      position of the first that differs from what the cache held, -1 if none does
    """
    reason = choice.reuse
    if reason is None:
        return {}
    n_prompt, reused = choice.prompt
    found: dict[str, Any] = {"reused": reused, "read": n_prompt - reused, "cause": reason.cause}
    message = reason.sentence
    if not choice.may_inspect:
        message = counts_sentence(reused, n_prompt - reused)
        if reason.miss:
            message += " " + tr("Cause: {label}.").format(label=label_of(reason.miss))
    return {FIELD: {**found, "at_token": reason.at_token, "message": message}}


def counted(choices: Sequence[Choice]) -> dict[str, Any]:
    """Tokens, time and cache, as OpenAI's completions report them; of several answers, what the first one found."""
    return {"usage": usage(choices), "timings": timings(choices[0].stats), **prefix_cache(choices[0])}


def reused(choice: Choice) -> Reused:
    """What the span of an answer has of the cache."""
    stats, reason = choice.stats, choice.reuse
    cause, at_token = (reason.cause, reason.at_token) if reason is not None else ("", -1)
    return Reused(*choice.prompt, stats.generated_tokens, cause, at_token, stats.reread_tokens)


def header(event: TurnStarted) -> tuple[bytes, bytes] | None:
    """Such as `reused=120, read=14, cause="date", at_token=96`; None if the back end does not say."""
    if event.reuse is None:
        return None
    n_read = event.prompt_tokens - event.reused_tokens
    value = f'reused={event.reused_tokens}, read={n_read}, cause="{event.reuse.cause}", at_token={event.reuse.at_token}'
    return HEADER, value.encode()
