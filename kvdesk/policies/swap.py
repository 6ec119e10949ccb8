"""Which conversation is evicted from the cache, where its state goes, and which saved state is dropped for it.

Pure decisions about values; files and engine are elsewhere. Saved states are a cache, never the truth: whatever is
dropped here costs a prefill and nothing else.
"""

import hashlib
import math
from array import array
from collections.abc import Sequence
from typing import Literal

from kvdesk.policies.tuned import LATELY_S, PAYS
from kvdesk.translation import tr
from kvdesk.values import dataclass, replace

Tier = Literal["memory", "disk"]
Destination = Literal["memory", "disk", "nowhere"]


@dataclass(frozen=True, slots=True)
class StateKind:
    """What decides whether a saved state means the same in another context. `rope`: (freq_base, freq_scale)."""

    model_sha256: str
    engine_version: str
    type_k: str
    type_v: str
    flash_attn: bool
    rope: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Resident:
    """A conversation in the cache. n_own: cells that nobody shares; state_bytes: of its blob; times in ms."""

    seq_id: int
    n_tokens: int
    n_own: int
    state_bytes: int
    idle_s: float
    prefill_ms: float
    restore_ms: float
    busy: bool = False
    has_saved_state: bool = False  # of exactly these tokens, in memory or on disk


@dataclass(frozen=True, slots=True)
class StateInfo:
    """A saved state.

    age              uses of all states since its last one, which counts as 1; it decides who gives way
    prefill_ms       what it saves
    stays_in_memory  dropped rather than moved to disk, as checkpoints (`kvdesk.policies.checkpoints`) and requests of
                     other programs are
    idle_s           time since its last use, by a clock that nobody sets; inf: before this start
    """

    key: str
    tier: Tier
    n_bytes: int
    age: int
    prefill_ms: float
    stays_in_memory: bool = False
    idle_s: float = math.inf


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes that saved states may take, set by the user."""

    memory_bytes: int
    disk_bytes: int


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a state goes. Before: `drop` these saved states, then move `demote` from memory to disk, in order."""

    to: Destination
    drop: tuple[str, ...]
    demote: tuple[str, ...]
    reason: str


def state_key(kind: StateKind, tokens: Sequence[int]) -> str:
    """SHA-256 over everything a state depends on, as 64 hexadecimal digits. Equal keys, equal states."""
    digest = hashlib.sha256()
    for part in (kind.model_sha256, kind.engine_version, kind.type_k, kind.type_v, kind.flash_attn, *kind.rope):
        text = repr(part).encode()
        digest.update(len(text).to_bytes(4, "little") + text)
    ids = array("i", tokens)
    digest.update(len(ids).to_bytes(8, "little") + ids.tobytes())
    return digest.hexdigest()


def eviction_order(residents: Sequence[Resident], n_cells: int) -> list[tuple[Resident, str]]:
    """Idle conversations to evict, in order, so that about `n_cells` cells become free; fewer if there are no more.

    Longest unused first, weighed by what its return will cost for each cell it frees: of two that have waited equally
    long, the one that is cheaper to restore. A conversation that frees nothing stays.
    """
    result: list[tuple[Resident, str]] = []
    for resident in sorted((r for r in residents if not r.busy and r.n_own), key=_staying_value):
        if n_cells <= 0:
            break
        n_cells -= resident.n_own
        back = tr("back in about {return_ms:,.0f} ms").format(return_ms=_return_ms(resident))
        result.append(
            (
                resident,
                tr("unused for {idle_s:,.0f} s, frees {n_own:,} cells, {back}").format(
                    idle_s=resident.idle_s, n_own=resident.n_own, back=back
                ),
            )
        )
    return result


def place(resident: Resident, states: Sequence[StateInfo], limits: Limits) -> Placement:
    """Where the state of an evicted conversation goes within the limits, and what gives way to it."""
    size = resident.state_bytes
    if resident.has_saved_state:
        return Placement("nowhere", (), (), tr("its saved state is up to date"))
    if resident.prefill_ms < PAYS * resident.restore_ms:
        return Placement(
            "nowhere",
            (),
            (),
            tr("a prefill takes {prefill_ms:,.0f} ms, a restore {restore_ms:,.0f} ms: not worth saving").format(
                prefill_ms=resident.prefill_ms, restore_ms=resident.restore_ms
            ),
        )
    if size <= limits.memory_bytes:
        moved = _give_way(states, "memory", size - limits.memory_bytes)
        stays = [s for s in states if s not in moved]
        demoted, dropped = _demote(moved, stays, limits)
        return Placement(
            "memory", dropped, demoted, tr("{mb} to memory{rest}").format(mb=_mb(size), rest=_and(dropped, demoted))
        )
    if size <= limits.disk_bytes:
        dropped = tuple(s.key for s in _give_way(states, "disk", size - limits.disk_bytes))
        return Placement(
            "disk",
            dropped,
            (),
            tr("{mb} is more than memory may hold: to disk{rest}").format(mb=_mb(size), rest=_and(dropped, ())),
        )
    return Placement(
        "nowhere", (), (), tr("{mb} is more than the limits allow: it will be prefilled again").format(mb=_mb(size))
    )


def room_in_memory(states: Sequence[StateInfo], limits: Limits) -> int:
    """Bytes that may be saved to memory before a recently used state must be dropped. Saving more than that in turn
    always drops what is needed next.
    """
    lately = sum(s.n_bytes for s in states if s.tier == "memory" and s.idle_s < LATELY_S)
    return max(0, limits.memory_bytes - lately)


def over_share(states: Sequence[StateInfo], size: int, limits: Limits, share: float) -> tuple[str, ...] | None:
    """Keys of one program's `states` to drop, the least valuable first, so that with another one of `size` bytes they
    take no more than their `share` of the memory. None: that one alone takes more.
    """
    most = int(limits.memory_bytes * share)
    return None if size > most else tuple(s.key for s in _give_way(states, "memory", size - most))


def over_limit(states: Sequence[StateInfo], limits: Limits) -> tuple[str, ...]:
    """Keys to drop, in order, so that the limits hold: after a start, or when the user lowered them."""
    tiers: tuple[tuple[Tier, int], ...] = (("memory", limits.memory_bytes), ("disk", limits.disk_bytes))
    return tuple(s.key for tier, limit in tiers for s in _give_way(states, tier, -limit))


def over_limit_at_the_end(states: Sequence[StateInfo], limits: Limits) -> tuple[str, ...]:
    """Keys to drop so that all others fit on disk, when what is in memory goes there too: the least valuable, before
    them those that would have stayed in memory, for which no conversation gives way.
    """
    too_large = [s for s in states if s.n_bytes > limits.disk_bytes]
    on_disk = [
        replace(s, tier="disk", prefill_ms=0.0 if s.stays_in_memory else s.prefill_ms)
        for s in states
        if s.n_bytes <= limits.disk_bytes
    ]
    return tuple(s.key for s in [*too_large, *_give_way(on_disk, "disk", -limits.disk_bytes)])


# --- private ----------------------------------------------------------------------------------------------------------


def _return_ms(resident: Resident) -> float:
    return min(resident.prefill_ms, resident.restore_ms)


def _staying_value(resident: Resident) -> float:
    """ms that its return costs, for each cell it frees and second it has not been used."""
    return _return_ms(resident) / resident.n_own / max(resident.idle_s, 0.1)


def _keeping_value(state: StateInfo) -> float:
    return state.prefill_ms / state.n_bytes / max(state.age, 1) if state.n_bytes else float("inf")


def _give_way(states: Sequence[StateInfo], tier: Tier, n_bytes: int) -> list[StateInfo]:
    """The least valuable saved states of a tier, until what it holds plus `n_bytes` is not above 0."""
    here = sorted((s for s in states if s.tier == tier), key=_keeping_value)
    over = sum(s.n_bytes for s in here) + n_bytes
    dropped: list[StateInfo] = []
    for state in here:
        if over <= 0:
            break
        dropped.append(state)
        over -= state.n_bytes
    return dropped


def _demote(
    moved: Sequence[StateInfo], stays: Sequence[StateInfo], limits: Limits
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(to disk, dropped): what memory gives up goes to disk as far as it is worth more than what is there."""
    arriving = [StateInfo(s.key, "disk", s.n_bytes, s.age, s.prefill_ms) for s in moved if not s.stays_in_memory]
    dropped = {s.key for s in _give_way([*stays, *arriving], "disk", -limits.disk_bytes)}
    dropped |= {s.key for s in moved if s.stays_in_memory}
    return tuple(s.key for s in arriving if s.key not in dropped), tuple(sorted(dropped))


def _and(dropped: tuple[str, ...], demoted: tuple[str, ...]) -> str:
    parts = [tr("{n} older to disk").format(n=len(demoted))] if demoted else []
    parts += [tr("{n} older dropped").format(n=len(dropped))] if dropped else []
    return f", {', '.join(parts)}" if parts else ""


def _mb(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
