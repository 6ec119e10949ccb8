"""Why the first token came when it did: what was measured on the way to it, as a sentence that begins with the time.

Owns the words. A cause appears only if it was measured; without one, the sentence has only the numbers. Pure: clocks
and counters come in as numbers.
"""

from typing import Literal

from kvdesk.message import FEW_TOKENS
from kvdesk.policies.tuned import HALF_A_CORE, NOTICED, SCATTER
from kvdesk.quantities import rate_text, seconds_text
from kvdesk.translation import plural, tr
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class Delay:
    """What was measured between sending and the first token. Seconds; 0 if it did not happen.

    all_s       the whole time
    queue_s     waited until other answers had ended; `load_s`: while the model was loaded; `wait_s`: for anything else
    saved       where the state was that was restored in `restore_s`
    prompt_s    the template was rendered, and its text tokenized
    n_read      tokens of the prompt that were read at `tok_s`; `usual_tok_s`: 0 if it is not known
    beside      other answers were read or written in the same batches
    others      processors' worth of time that other programs took meanwhile, of `n_processors`; None: not measured
    n_faults    pages of memory that had to be read from the disk meanwhile
    """

    all_s: float
    n_read: int
    tok_s: float
    usual_tok_s: float = 0.0
    queue_s: float = 0.0
    load_s: float = 0.0
    wait_s: float = 0.0
    saved: Literal["", "memory", "disk"] = ""
    restore_s: float = 0.0
    prompt_s: float = 0.0
    beside: bool = False
    others: float | None = None
    n_processors: int = 1
    n_faults: int = 0


def first_token_reason(delay: Delay) -> str:
    """The sentence; empty if there was no first token."""
    if delay.all_s <= 0:
        return ""
    parts = [*_before(delay), _reading(delay)]
    head = tr("First token after {seconds}: {parts}").format(
        seconds=seconds_text(delay.all_s), parts=tr(", ").join(parts)
    )
    causes = _causes(delay)
    if not causes:
        return tr("{said}.").format(said=head)
    words = tr("{said}: {causes}.") if delay.usual_tok_s else tr("{said}; meanwhile {causes}.")
    return words.format(said=head, causes=tr(" and ").join(causes))


def _before(delay: Delay) -> list[str]:
    """What happened before the first token was read, if it took a noticeable part of the time."""
    parts = (
        (delay.load_s, tr("{seconds} while the model was loaded")),
        (delay.queue_s, tr("{seconds} in the queue behind another answer")),
        (delay.wait_s, tr("{seconds} until other work had ended")),
        (delay.restore_s if delay.saved == "disk" else 0.0, tr("{seconds} to read its saved state from the disk")),
        (delay.restore_s if delay.saved == "memory" else 0.0, tr("{seconds} to bring back its saved state")),
        (delay.prompt_s, tr("{seconds} for the chat template and the tokens")),
    )
    least = NOTICED * max(1.0, delay.all_s)
    return [words.format(seconds=seconds_text(took)) for took, words in parts if took >= least]


def _reading(delay: Delay) -> str:
    n = f"{delay.n_read:,}"
    if delay.n_read < FEW_TOKENS or not delay.tok_s:
        return plural("1 token read", "%n tokens read", delay.n_read)
    if not delay.usual_tok_s:
        return tr("{n} tokens read at {tok_s} tok/s").format(n=n, tok_s=rate_text(delay.tok_s))
    if delay.usual_tok_s / SCATTER <= delay.tok_s <= SCATTER * delay.usual_tok_s:
        return tr("{n} tokens read at {tok_s} tok/s, as usual on this computer").format(
            n=n, tok_s=rate_text(delay.tok_s)
        )
    return tr("{n} tokens read at {tok_s} tok/s, usually {usual} on this computer").format(
        n=n, tok_s=rate_text(delay.tok_s), usual=rate_text(delay.usual_tok_s)
    )


def _causes(delay: Delay) -> list[str]:
    """Why it was read slowly. If that is not known, what other programs used is still worth knowing."""
    if delay.n_read < FEW_TOKENS or delay.tok_s >= delay.usual_tok_s / SCATTER > 0:
        return []
    found = []
    if delay.beside:
        found.append(tr("other answers were computed at the same time"))
    if delay.others is not None and delay.others >= HALF_A_CORE:
        words = tr("other programs used {used} of {n} processors")
        found.append(words.format(used=f"{min(delay.others, delay.n_processors):.1f}", n=delay.n_processors))
    if delay.n_faults > delay.n_read:
        found.append(tr("{n} pages of memory were read from the disk").format(n=f"{delay.n_faults:,}"))
    return found
