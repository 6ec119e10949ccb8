"""What else a log says of a request, beside the cause of its miss. Pure."""

from collections.abc import Iterator
from typing import Final

from kvdesk.engine_log.findings import UNUSED, Cause
from kvdesk.engine_log.record import Request
from kvdesk.translation import tr

DRAFTS_PAY: Final = 0.3
"""Share of drafted tokens that were accepted below which a comparison without drafts is worth its time."""
FILLS: Final = 0.8
"""Share of a context from which a prompt fills it: clients leave room for the answer."""


def is_unlike_all(r: Request, cause: Cause) -> bool:
    """Whether it is a new conversation only as far as a server can tell."""
    return cause is Cause.NEW and r.how == "age" and r.has_earlier and r.prompt is None


def _unlike_all(r: Request) -> str:
    if r.elsewhere is not None and r.elsewhere[2]:
        said = tr("Slot {n} was busy and may have had its beginning: the request got slot {slot}.")
        return said.format(n=r.elsewhere[0], slot=r.slot)
    if r.elsewhere is None or r.elsewhere[1] <= 0:
        return tr("No slot begins like it: another conversation, or something changed near its beginning.")
    said = tr(
        "Slot {slot} has the same first tokens ({same:,}), and others after them: another conversation, or something "
        "changed near its beginning."
    )
    return said.format(slot=r.elsewhere[0], same=r.elsewhere[1])


def notes_of(r: Request, cause: Cause) -> list[str]:
    notes = list(_unexplained(r, cause))
    if is_unlike_all(r, cause):
        notes.append(_unlike_all(r))
    if r.restored >= 0 and cause is not Cause.CHECKPOINT:
        notes.append(tr("A checkpoint at token {at:,} was restored.").format(at=r.restored))
    elif r.forced and r.same > 0 and cause not in UNUSED:
        notes.append(
            tr("Tokens before it that were read again, since the memory cannot be cut back: {n:,}.").format(n=r.same)
        )
    if r.prepared == "file":
        notes.append(tr("Before, the slot was saved to a file, restored or erased. A slot file has no checkpoints."))
    if r.shifted > 0:
        notes.append(
            tr("The context was full: {n:,} tokens after the beginning were dropped and the rest was shifted.").format(
                n=r.shifted
            )
        )
    if r.truncated and r.shifted <= 0:
        notes.append(tr("The context was full: the answer was cut off."))
    if r.no_room:
        notes.append(tr("There were no free cells for a whole batch: it was retried in smaller ones."))
    if r.dropped:
        notes.append(tr("Saved prompts dropped for this one: {n}.").format(n=r.dropped))
    notes += _checkpoint_notes(r)
    if r.reuse_off > 0:
        notes.append(tr("--cache-reuse {n} was ignored: this memory cannot be shifted.").format(n=r.reuse_off))
    if 0 <= r.accepted < DRAFTS_PAY:
        said = tr("Only {share:.0f} % of the drafted tokens were accepted: the answer may be faster without drafts.")
        notes.append(said.format(share=100 * r.accepted))
    if r.cancelled and not r.error:  # a server cancels what it refuses, too
        notes.append(tr("The client disconnected."))
    return notes


def _unexplained(r: Request, cause: Cause) -> Iterator[str]:
    """What may have been the cause where the log does not show it."""
    ctx = r.server.ctx
    if r.after_load and r.is_first and r.reused <= 0 and not r.error:
        yield tr("A model was loaded before it, so the cache was empty.")
    if cause is Cause.UNKNOWN and r.reused == 0 and not r.is_first:
        yield tr("Nothing was reused, and the log does not show why.")
    if cause is Cause.UNKNOWN and 0 < r.reused < r.prompt_before:
        said = tr(
            "The previous prompt had {n:,} tokens. The log does not show whether this is another conversation, its "
            "beginning was changed, or the cache lost it."
        )
        yield said.format(n=r.prompt_before)
    if cause in (Cause.UNKNOWN, Cause.DIVERGED) and r.n_prompt > FILLS * ctx > 0:
        said = tr(
            "The prompt fills the context ({n:,} of {ctx:,} tokens): clients cut its front then, which changes it."
        )
        yield said.format(n=r.n_prompt, ctx=ctx)


def _checkpoint_notes(r: Request) -> Iterator[str]:
    if r.created:
        size = f" ({r.created_mib:,.0f} MiB)" if r.created_mib else ""
        yield tr("Checkpoints made: {n}{size}.").format(n=r.created, size=size)
    if r.invalidated:
        yield tr("Checkpoints erased after the difference: {n}.").format(n=r.invalidated)
    if r.erased:
        yield tr("Old checkpoints erased, since --ctx-checkpoints was reached: {n}.").format(n=r.erased)
