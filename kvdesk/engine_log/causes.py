"""Why a request read what it read: the first cause that fits the record, in a sentence, with the cures.

Pure. Owns the checks and their words. Must never know lines.
"""

import re
from typing import Final

from kvdesk.cache.reuse.prompt_change import ATTRIBUTION as ATTRIBUTION_TEXT
from kvdesk.cache.reuse.prompt_change import Change, PromptChange, change_between, is_another
from kvdesk.cache.reuse.usual_causes import UsualCause, usual_cause
from kvdesk.engine_log import cures
from kvdesk.engine_log.cures import Cure
from kvdesk.engine_log.findings import ELSEWHERE, HITS, UNUSED, Cause, Finding
from kvdesk.engine_log.notes import is_unlike_all, notes_of
from kvdesk.engine_log.other_programs import LLAMA_CPP_PYTHON, OMLX
from kvdesk.engine_log.record import Request, Server
from kvdesk.translation import plural, tr

FEW: Final = 16
"""Tokens that may be read again without a cause: the last block, the beginning of an answer."""
SMALL: Final = 0.02
"""Share of the prompt that may be, likewise; and what rounded similarities cannot tell."""
ANOTHER: Final = 0.5
"""Share of a slot's tokens below which the prompt may be another conversation's: llama-server saves the old one
then."""
MINOR: Final = 0.25
"""Share of the tokens that a client changed up to which those that the engine lost besides are no cause."""


_CHANGES: Final = {
    Change.TOOLS_GONE: (Cause.TOOLS, (cures.STABLE_TOOLS,)),
    Change.TOOLS_REORDERED: (Cause.TOOLS, (cures.STABLE_TOOLS,)),
    Change.TOOLS_CHANGED: (Cause.TOOLS, (cures.STABLE_TOOLS,)),
    Change.ROLE_CHANGED: (Cause.ROLE, (cures.APPEND_ONLY,)),
    Change.THINKING: (Cause.THINKING, (cures.PRESERVE_THINKING,)),
    Change.FRONT_CUT: (Cause.FRONT_CUT, (cures.WHOLE_CUTS, cures.CONTEXT)),
    Change.DROPPED: (Cause.EDITED, (cures.APPEND_ONLY,)),
    Change.INSERTED: (Cause.EDITED, (cures.APPEND_ONLY,)),
    Change.BLOCK_MOVED: (Cause.BLOCK_MOVED, (cures.APPEND_ONLY, cures.STABLE_FRONT)),
    Change.COMPACTED: (Cause.COMPACTED, (cures.WHOLE_CUTS,)),
    Change.ATTRIBUTION: (Cause.ATTRIBUTION, (cures.ATTRIBUTION,)),
    Change.USUAL: (Cause.EDITED, (cures.STABLE_FRONT,)),
    Change.EDITED: (Cause.EDITED, (cures.APPEND_ONLY,)),
    Change.SETTINGS: (Cause.TEMPLATE, (cures.STABLE_SETTINGS,)),
}  # fmt: skip


_HERE: Final = " | "
"""Where the texts around a difference differ (`LLAMA_SERVER_SLOTS_N_DIFF`)."""
_STATELESS: Final = re.compile(r"embed|rerank")
"""Paths of requests that llama-server never compares with its slots."""
_BEFORE, _BEHIND = 20, 40
"""Characters of them that are shown."""
_NO_CHANGE: Final = PromptChange(Change.NOTHING)


def explain_request(request: Request, server: Server) -> Finding:
    """Why this request read what it read."""
    cause, sentence, helps = _cause(request, server)
    lost = 0 if cause in HITS or request.error else _lost(request, cause)
    has_time = request.read > 0 and request.prompt_ms > 0
    per_token_ms = request.prompt_ms / request.read if has_time else server.ms_per_token
    return Finding(
        cause,
        sentence,
        lost,
        lost * per_token_ms / 1000,
        cures.cures_of(server.name, helps),
        tuple(notes_of(request, cause)),
        _more(request, cause, server),
    )


def _lost(r: Request, cause: Cause) -> int:
    """Tokens of the prompt that were computed though a slot had the same, or as many that were changed."""
    elsewhere = r.elsewhere[1] if r.elsewhere else -1
    if cause in UNUSED:
        known = r.same
    elif cause in ELSEWHERE:
        known = max(r.same, elsewhere)
    else:
        known = max(min(r.held, r.n_prompt), r.same, elsewhere, _followed(r))
    lost = known - max(r.reused, 0)
    return max(0, lost if r.read < 0 else min(lost, r.read))


def _is_more(tokens: int, r: Request) -> bool:
    """Whether that many tokens are worth a cause."""
    return tokens > max(FEW, SMALL * max(r.n_prompt, 0))


def _counts(r: Request) -> str:
    if r.n_prompt < 0 or r.reused < 0:
        read = plural("1 token of the prompt was read.", "%n tokens of the prompt were read.", r.read)
        return read if r.read >= 0 else ""
    counts = tr("{reused:,} of {n:,} tokens were reused, {read:,} read.")
    return counts.format(reused=r.reused, n=r.n_prompt, read=max(r.read, 0))


_Found = tuple[Cause, str, tuple[Cure, ...]]


def _cause(r: Request, s: Server) -> _Found:
    is_of_memory = r.forced or r.restored >= 0 or s.program == OMLX
    is_minor = is_of_memory and MINOR * _changed(r) > max(0, r.same - max(r.reused, 0))
    others = [_moved_on, _slot_loss, _client_change]
    for look in [_failure, _stateless, *([*others, _engine_loss] if is_minor else [_engine_loss, *others])]:
        if found := look(r, s):
            return found
    return _hit(r)


def _changed(r: Request) -> int:
    """Tokens of the slot that the prompt does not go on from: no memory could have used them."""
    return min(r.held, r.n_prompt) - r.same if r.same >= 0 else 0


def _failure(r: Request, s: Server) -> _Found | None:
    if r.cut_from >= 0:
        said = tr("The prompt of {n:,} tokens was longer than the context: its beginning was cut off silently.")
        return Cause.TRUNCATED, said.format(n=r.cut_from), (cures.CONTEXT,)
    if not r.error:
        return None
    room = (cures.CONTEXT,) if s.slots == 1 or s.is_unified else (cures.CONTEXT, cures.UNIFIED)
    if "too large to process" in r.error:
        said = tr("Embeddings and ranks are computed in one physical batch, and the input did not fit: {error}")
        return Cause.TOO_LONG, said.format(error=r.error), (cures.BATCH,)
    if "has been exceeded" in r.error:
        said = tr("There were no free cells left while the request ran, so the server ended all: {error}")
        return Cause.TOO_LONG, said.format(error=r.error), room
    if "exceed" in r.error or "larger than the max context" in r.error:
        return Cause.TOO_LONG, tr("The prompt did not fit into the slot: {error}").format(error=r.error), room
    return Cause.REFUSED, tr("The server refused the request: {error}").format(error=r.error), ()


def _stateless(r: Request, _: Server) -> _Found | None:
    if r.reused > 0 or not _STATELESS.search(r.path):
        return None
    return Cause.STATELESS, tr("llama-server computes embeddings and ranks without its cache.") + " " + _counts(r), ()


def _engine_loss(r: Request, s: Server) -> _Found | None:
    """What was the same and could not be used."""
    unused = r.same - max(r.reused, 0)
    said_all = 4 in r.levels or bool(s.program)
    if s.program == OMLX:
        said = tr(
            "A stored sequence had the first {same:,} tokens, and {reused:,} were used: oMLX reuses whole blocks, and "
            "some models only up to a state that was saved at the end of one."
        )
        cause = Cause.CHECKPOINT if r.reused > 0 else Cause.FORCED
        return (cause, said.format(same=r.same, reused=r.reused), ()) if _is_more(unused, r) else None
    if r.restored >= 0 and not r.forced and _is_more(unused, r):
        said = tr(
            "This memory is cut only at checkpoints: the last one before the first difference (token {same:,}) was "
            "at {at:,}."
        )
        return Cause.CHECKPOINT, said.format(same=r.same, at=r.restored), (cures.CHECKPOINTS, *_full(s, r))
    if not r.forced and not (r.reused == 0 and _is_more(unused, r)):
        return None
    if not r.forced and said_all:
        if r.prepared == "adapters":
            return Cause.ADAPTERS, tr("The request uses other LoRA adapters, so the slot was emptied."), ()
        if r.ended and not r.cancelled and r.prompt_ms < 0 and r.generated < 0:
            said = tr("The request generated nothing: llama-server computes embeddings and ranks without its cache.")
            return Cause.STATELESS, f"{said} {_counts(r)}", ()
        if r.how == "similarity" or r.same > 0:
            said = tr(
                "{same:,} tokens were the same but none was used, and the engine gave no reason: the request has "
                "cache_prompt off."
            )
            return Cause.NOT_CACHED, said.format(same=r.same), (cures.CACHE_PROMPT,)
    if r.cache_prompt is False:
        return Cause.NOT_CACHED, tr("The request has cache_prompt: false."), (cures.CACHE_PROMPT,)
    return _forced(r, s)


def _full(s: Server, r: Request) -> tuple[Cure, ...]:
    return (cures.SWA_FULL,) if not s.full_window and (s.memory == "window" or r.window > 1) else ()


def _forced(r: Request, s: Server) -> _Found:
    at = tr("the first difference (token {same:,})").format(same=r.same) if r.same >= 0 else tr("the first difference")
    reuse: tuple[Cure, ...] = (cures.NO_CACHE_REUSE,) if r.reuse_off > 0 else ()
    if r.prepared == "file" and not (r.checked or r.invalidated):
        reuse += (cures.READ_ONCE,)
    was_filled = r.prepared == "restored" or (r.is_first and s.slots > 0)  # no request of this log did
    if was_filled and not (r.checked or r.invalidated):
        said = tr("The slot came from a file, and a slot file has no checkpoints: this memory cannot go back to {at}.")
        return Cause.NO_CHECKPOINT_IN_FILE, said.format(at=at), (cures.READ_ONCE, *_full(s, r))
    if r.checked or r.invalidated:
        n = max(r.checked, r.invalidated)
        why = tr("none of its checkpoints ({n}) is before {at}").format(n=n, at=at)
    else:
        why = tr("it had no checkpoint before {at}").format(at=at)
    if s.memory != "recurrent" and (s.memory == "window" or r.window > 1):
        said = tr("The sliding window no longer reached back to {at}, and {why}: everything was read again.")
        return Cause.WINDOW, said.format(at=at, why=why), (*_full(s, r), cures.CHECKPOINTS, *reuse)
    if s.memory == "recurrent" or r.window in (0, 1) or s.program == LLAMA_CPP_PYTHON:
        said = tr("A recurrent state cannot be cut back, and {why}: everything was read again.")
        return Cause.RECURRENT, said.format(why=why), (cures.CHECKPOINTS, *reuse)
    if not r.forced:
        said = tr(
            "{same:,} tokens were the same but none was used: the memory has a window or a recurrent state without a "
            "suitable checkpoint, or the request has cache_prompt off. The default log does not show which."
        )
        return Cause.FORCED, said.format(same=r.same), (cures.CHECKPOINTS, cures.SWA_FULL, cures.CACHE_PROMPT, *reuse)
    said = tr(
        "The memory has a sliding window or a recurrent state and cannot be cut back, and {why}: everything was "
        "read again."
    )
    return Cause.FORCED, said.format(why=why), (cures.CHECKPOINTS, cures.SWA_FULL, *reuse)


def _moved_on(r: Request, _: Server) -> _Found | None:
    """The client changed a conversation of another slot so early that the server did not recognize it."""
    if r.follows is None or r.prompt is None:
        return None
    change = change_between(r.follows[0], r.prompt)
    if change.change not in _CHANGES or not _is_more(_followed(r), r):
        return None
    cause, helps = _CHANGES[change.change]
    return cause, change.sentence + " " + tr("Another slot had the conversation until then."), helps


def _followed(r: Request) -> int:
    """Tokens of the prompt that the one before had in another slot, by characters, less those that were reused."""
    share = r.follows[1] if r.follows is not None else 0.0
    return round(share * max(r.n_prompt, 0)) - max(r.reused, 0)


def _slot_loss(r: Request, s: Server) -> _Found | None:
    """What another slot had, or this one before."""
    if r.prepared == "shifted" and r.same >= 0 and _is_more(min(r.held, r.n_prompt) - r.same, r):
        said = tr(
            "The previous request was shifted at the end of the context, so the slot no longer contains what clients "
            "send, from token {same:,} on."
        )
        return Cause.AFTER_SHIFT, said.format(same=r.same), (cures.NO_SHIFT, cures.CONTEXT)
    if r.load_failed:
        said = tr("A prompt saved in memory began like this one, but there were not enough free cells to restore it.")
        return Cause.EVICTED, said, (cures.CONTEXT,)
    if r.prepared == "purged" and r.loaded < 0:
        said = tr("The slot had been emptied because other requests needed its cells.")
        return Cause.EVICTED, said, (cures.CONTEXT, cures.CACHE_RAM)
    if r.prepared == "cleared" and r.how == "id" and r.loaded < 0 and r.reused <= 0:
        said = tr(
            "The slot was idle, so it was saved to memory and emptied, and a request with an id_slot does not look "
            "there."
        )
        return Cause.IDLE, said, (cures.KEEP_IDLE,)
    if r.elsewhere is not None and r.how in ("age", "similarity", "id"):
        number, same, is_busy = r.elsewhere
        if is_busy and _is_more(max(r.read, 0), r) and not r.is_first:
            said = tr("Slot {n} was busy and may have had its beginning: the request got slot {slot}.")
            return Cause.BUSY, said.format(n=number, slot=r.slot), (cures.PARALLEL, cures.ID_SLOT)
        if _is_more(same - max(r.reused, 0), r):
            if r.how == "age":
                said = tr(
                    "Slot {n} had the first {same:,} tokens, less than the similarity of {threshold} requires: the "
                    "oldest slot was used."
                )
                helps = (cures.SIMILARITY, cures.ID_SLOT)
                return Cause.LOW_SIMILARITY, said.format(n=number, same=same, threshold=r.threshold), helps
            said = tr("Slot {n} had the first {same:,} tokens, and the request got slot {slot}.")
            return Cause.OTHER_SLOT, said.format(n=number, same=same, slot=r.slot), (cures.ID_SLOT, cures.PARALLEL)
    if r.loaded < 0 and r.how == "age" and s.n_dropped and not r.is_first and r.reused <= 0:
        said = tr(
            "No slot and no saved prompt began like this one; {n} saved prompts had been dropped, since --cache-ram "
            "was full."
        )
        return Cause.EVICTED, said.format(n=s.n_dropped), (cures.CACHE_RAM, cures.PARALLEL)
    return None


def _client_change(r: Request, s: Server) -> _Found | None:
    """The prompt is no continuation of what the slot held."""
    behind = min(r.held, r.n_prompt) - max(r.same, r.reused)
    diverged = r.same >= 0 and r.held > 0 and _is_more(behind, r) and r.same < r.n_prompt - 1
    if not diverged:
        return None
    has_texts = r.before is not None and r.prompt is not None and r.before.is_rendered == r.prompt.is_rendered
    change = change_between(r.before, r.prompt) if has_texts and r.before and r.prompt else _NO_CHANGE
    if change.change in (Change.COMPACTED, Change.EDITED) and r.before and r.prompt and is_another(r.before, r.prompt):
        said = tr("It has less than half of its text in common with what the slot held: another conversation.")
        return Cause.NEW, said + " " + _counts(r), ()
    if change.change in _CHANGES:
        cause, helps = _CHANGES[change.change]
        return cause, change.sentence, helps
    if r.old or r.new:
        return _by_text(r)
    if 0 <= r.prompt_before <= r.same + max(FEW, SMALL * r.prompt_before if r.is_rounded else 0):
        return _answer_changed(r)
    if has_texts:
        said = tr(
            "The messages continue as before, but the template renders earlier ones differently from token {same:,} "
            "on: usually without their reasoning."
        )
        return Cause.TEMPLATE, said.format(same=r.same), (cures.PRESERVE_THINKING,)
    if r.same < ANOTHER * r.held:
        said = tr(
            "The prompt differs from the slot ({held:,} tokens) at token {same:,}: another conversation, or "
            "something changed near its beginning."
        )
        return (
            Cause.DIVERGED,
            said.format(held=r.held, same=r.same),
            (cures.STABLE_FRONT, cures.PARALLEL, cures.CACHE_RAM),
        )
    said = tr(
        "The prompt differs from the slot ({held:,} tokens) at token {same:,}: the client or the template changed an "
        "earlier message."
    )
    helps = (cures.APPEND_ONLY, cures.PRESERVE_THINKING) if s.can_preserve else (cures.APPEND_ONLY,)
    return Cause.DIVERGED, said.format(held=r.held, same=r.same), helps


def _answer_changed(r: Request) -> _Found:
    """All of the prompt before is there, so what differs is the answer to it."""
    if r.thought:
        said = tr("The reasoning of the last answer was left out when it was sent back, from token {same:,} on.")
        return Cause.THINKING, said.format(same=r.same), (cures.PRESERVE_THINKING,)
    said = tr(
        "The last answer was sent back differently from how it was generated, from token {same:,} on: without its "
        "reasoning, or rewritten by the client or the template."
    )
    return Cause.ANSWER, said.format(same=r.same), (cures.PRESERVE_THINKING, cures.APPEND_ONLY)


def _by_text(r: Request) -> _Found:
    """From the text around the first difference, which is marked with ` | `."""
    sentence = tr("The slot has “{old}”, the prompt has “{new}” (token {same:,}).").format(
        old=_one_line(r.old), new=_one_line(r.new), same=r.same
    )
    old, new = (text.replace(_HERE, "", 1) for text in (r.old, r.new))
    if ATTRIBUTION_TEXT.search(old) or ATTRIBUTION_TEXT.search(new):
        return Cause.ATTRIBUTION, sentence, (cures.ATTRIBUTION,)
    usual = usual_cause(old, new)
    said = f"{sentence} {usual.sentence}" if usual is not None else sentence
    if usual is UsualCause.REASONING:
        return Cause.THINKING, said, (cures.PRESERVE_THINKING,)
    return Cause.EDITED, said, (cures.STABLE_FRONT if usual else cures.APPEND_ONLY,)


def _one_line(text: str) -> str:
    """The last words before the difference, and what follows."""
    before, _, behind = text.partition(_HERE)
    words = before if len(before) <= _BEFORE else re.sub(r"^\S*\s", "", before[-_BEFORE:])
    return " ".join((words + behind[:_BEHIND]).split())


def _hit(r: Request) -> _Found:
    counts = _counts(r)
    if r.chunks:
        return (
            Cause.SHIFTED_CHUNKS,
            tr("{n:,} tokens were shifted to new positions.").format(n=r.chunks) + " " + counts,
            (),
        )
    if r.loaded >= 0 and (r.prompt_before < 0 or r.reused > _least_continued(r)):
        return Cause.LOADED, tr("Its beginning came from a prompt saved in memory.") + " " + counts, ()
    if r.n_prompt > 0 and 0 <= r.n_prompt - 1 <= r.same:
        return Cause.REGENERATED, tr("The slot had the whole prompt.") + " " + counts, ()
    if r.invalidated and r.same < 0 <= r.begins:
        said = tr(
            "The slot had {held:,} tokens or more, and was read again from token {at:,} on. The log does not show the "
            "first difference."
        )
        return Cause.DIVERGED, said.format(held=r.held, at=r.begins), (cures.APPEND_ONLY, cures.CHECKPOINTS)
    if r.reused > max(0, _least_continued(r)):
        return Cause.CONTINUED, counts, ()
    if r.is_first or r.held == 0 or r.how == "age":
        return Cause.NEW, tr("It continues no request that the log shows.") + " " + counts, ()
    return Cause.UNKNOWN, counts, ()


def _least_continued(r: Request) -> float:
    """Tokens up to which the beginning may be that of another conversation, too."""
    if r.how == "age":
        return ANOTHER * (r.held if r.held > 0 else r.n_prompt)
    before = r.held if r.held > 0 and r.same < 0 else r.prompt_before if r.held < 0 else 0
    return ANOTHER * min(before, r.n_prompt)


def _more(r: Request, cause: Cause, s: Server) -> str:
    may_differ = is_unlike_all(r, cause)
    if cause is Cause.UNKNOWN and 3 in r.levels and 4 not in r.levels and not s.inside:
        return cures.LOG_TEXT
    if s.program or (cause in HITS and not may_differ):
        return ""
    if s.inside:
        return "" if 4 in r.levels else cures.LOG_INSIDE[s.inside]
    bodies = cures.LOG_BODIES if s.level < 5 else tr(cures.LOG_NEXT)
    if may_differ:
        return bodies
    if cause is Cause.FORCED and 4 not in r.levels:
        return cures.LOG_TEXT
    if cause in (Cause.DIVERGED, Cause.TEMPLATE, Cause.ANSWER):
        return bodies if r.old or 4 in r.levels else cures.LOG_TEXT
    return ""
