"""Which operations this model and context allow on the cache, and why not: one sentence for each.

Owns the rules that controls and policies consult and the guards enforce. Pure: must never call the engine.
All `file:line` references are llama.cpp 0c1e57098.
"""

from collections.abc import Iterator, Mapping

from kvdesk.backends.local.llama.traits import FLOAT_TYPES, Traits
from kvdesk.protocol.operations import Answer, Capability, OperationName
from kvdesk.settings import CacheType
from kvdesk.translation import marked, tr

_ROUNDING = marked("without flash attention sums depend on where cells lie, so a later text may differ by rounding.")

_NEVER_UNKNOWN = frozenset({"seq_add", "seq_add with quantized K", "swap", "compaction", "attention"})
"""Not allowed on a memory whose rules kvdesk does not know, because a mistake would abort the process."""

Capabilities = Mapping[OperationName, Capability]


def capabilities(traits: Traits) -> Capabilities:
    """The matrix of a model and context, in a fixed order. Pure."""
    rows = {row.operation: row for row in _all(traits)}
    reason = traits.geometry.facts.reason
    if not reason:
        return rows
    unknown = tr("kvdesk does not know the rules of this memory: {reason}.").format(reason=reason)
    return {name: row if name in _NEVER_UNKNOWN else Capability(name, "unknown", unknown) for name, row in rows.items()}


def _all(t: Traits) -> Iterator[Capability]:
    yield Capability("seq_rm", "yes", tr("All cells of a conversation can be removed."))
    yield Capability("partial seq_rm", *_partial_rm(t))
    yield Capability("seq_cp", *_copy(t))
    yield Capability("partial seq_cp", *_partial_cp(t))
    yield Capability("seq_keep", *_keep(t))
    yield Capability("seq_add", *_shift(t, quantized=t.quantized_k))
    yield Capability("seq_add with quantized K", *_shift(t, quantized=True))
    yield Capability("swap", *_swap(t))
    yield Capability("compaction", *_compaction(t))
    yield Capability("quantized K", *_quantized_k(t))
    yield Capability("quantized V", *_quantized_v(t))
    yield Capability("flash attention off", *_flash_off(t))
    yield Capability("streams", *_streams(t))
    yield Capability("attention", *_attention(t))
    yield Capability("exact answers", *_exact(t))


def _partial_rm(t: Traits) -> tuple[Answer, str]:
    if t.geometry.has_state:
        if not t.geometry.n_rs_seq:
            return "no", tr("No part of a state can be removed: an edit goes back to a checkpoint of all of it.")
        return "no", tr(
            "Only the last tokens of a batch can be removed, up to {n}: any other edit goes back to a checkpoint of "
            "all of it."
        ).format(n=t.geometry.n_rs_seq)
    if t.geometry.has_window:
        if t.geometry.n_window < t.geometry.n_cells:
            return "with loss", tr(
                "Tokens that have left the sliding window are restored only with a checkpoint of the whole state."
            )
        return "with loss", tr("Tokens that have left the sliding window are not restored when the end is removed.")
    return "yes", tr("Any range of positions can be removed.")


def _copy(t: Traits) -> tuple[Answer, str]:
    if t.geometry.n_stream > 1:
        return "yes", tr(
            "The copy gets separate cells in another stream; nothing is shared, and that stream's cells are lost."
        )
    if not t.geometry.has_attention:
        return "yes", tr("The copy shares the state until one of the two goes on.")
    return "yes", tr("The copy shares the cells: it takes no memory until one of the two goes on.")


def _partial_cp(t: Traits) -> tuple[Answer, str]:
    if t.geometry.has_state:
        return "no", tr("A state holds the whole conversation: there is no copy of a part.")
    if t.geometry.n_stream > 1:
        return "no", tr("Between streams only a whole conversation can be copied: llama.cpp would abort.")
    if t.geometry.has_window:
        return "with loss", tr("Only what is still in the sliding window can be copied.")
    return "yes", tr("Any range of positions can be shared with another conversation.")


def _keep(t: Traits) -> tuple[Answer, str]:
    if t.geometry.n_stream > 1 and t.geometry.facts.kind != "dsv4":
        return "with loss", tr("Every conversation has a separate stream, so the others are not removed.")
    return "yes", tr("All other conversations are removed.")


def _shift(t: Traits, *, quantized: bool) -> tuple[Answer, str]:
    """llama_kv_cache::update aborts where a shift cannot run (llama-kv-cache.cpp:858)."""
    g, m = t.geometry, t.model
    if g.facts.reason:
        return "no", tr("kvdesk does not know how positions are moved in this memory.")
    if not g.has_attention:
        return "yes", tr("A recurrent state has no positions inside: only its number changes.")
    if why := _never_shifted(t):
        return "no", why
    if not m.has_rope:
        return _shift_without_rope(t)
    if t.settings.type_k == CacheType.BF16 and not quantized:
        return "no", tr("K is bf16, which llama.cpp cannot rotate on a CPU: it would abort.")
    if quantized:
        return _shift_quantized(t)
    if g.has_recurrent:
        return "with loss", tr("Attention moves exactly; the recurrent state keeps what it has seen.")
    return "yes", tr("K is rotated to the new positions at the next decode; shared cells move for all conversations.")


def _never_shifted(t: Traits) -> str:
    """Why llama.cpp cannot rotate K in this memory, "" if it can."""
    g = t.geometry
    if g.facts.n_pos_per_embd > 1:
        return tr("Tokens have several positions each (M-RoPE): llama.cpp would abort.")
    if not g.facts.can_shift:
        return tr("llama.cpp does not shift positions of {architecture} models: it would abort.").format(
            architecture=g.facts.architecture
        )
    if not g.can_shift:
        return tr("The window cache is smaller than the base cache (swa_full is off): llama.cpp does not shift.")
    if t.model.mixed_rope:
        return tr("Some layers are not rotated by position, but llama.cpp would rotate all of them.")
    # other numbers than those that were rotated, behind a Hadamard matrix (models/deepseek32.cpp:246)
    if g.facts.kind in ("dsa", "dsa_iswa"):
        return tr("llama.cpp would not rotate the indexer's keys as they are stored.")
    if not t.creation.can_rotate:
        return tr("One of the caches has no layers: llama.cpp would abort.")
    return ""


def _shift_without_rope(t: Traits) -> tuple[Answer, str]:
    if t.model.n_positions:
        return "with loss", tr("Positions are learned and stay inside K and V: only their numbers change.")
    if t.geometry.facts.architecture.startswith("granite"):
        return "no", tr("No layer is rotated by position, and llama.cpp would abort on an empty rotation.")
    return "yes", tr("K does not depend on the position, so nothing has to be rotated.")


def _shift_quantized(t: Traits) -> tuple[Answer, str]:
    """build_rope_shift dereferences a rotation matrix that may be missing (llama-kv-cache.cpp:1961-1973)."""
    if t.quantized_k and not t.rotation:
        return "no", "Quantized K is stored without a rotation matrix here: llama.cpp would crash."
    if any(head <= 0 or head % 64 for head in t.head_k):
        return "no", tr("K heads are not a multiple of 64 numbers: with quantized K llama.cpp would crash.")
    if not t.whole_head_rotates:
        return "no", tr("Only a part of each K head is rotated: with quantized K llama.cpp gets that wrong.")
    return "with loss", tr("Each shift takes quantized K apart and rounds it again: a little is lost every time.")


def _swap(t: Traits) -> tuple[Answer, str]:
    if t.geometry.facts.reason:
        return "no", tr("kvdesk does not know how this memory is saved, so it cannot check it.")
    if t.geometry.has_window:
        return "with loss", tr("A saved conversation leaves out what the sliding window no longer sees.")
    if _sums_by_place(t):
        return "with loss", tr("K and V are restored exactly, but in other cells; {rounding}").format(
            rounding=tr(_ROUNDING)
        )
    return "yes", tr("A conversation can be saved and brought back exactly; cells it shared become its own.")


def _sums_by_place(t: Traits) -> bool:
    """Whether attention groups its sums differently when cells move, which changes rounding."""
    return t.geometry.has_attention and not t.settings.flash_attn


def _compaction(t: Traits) -> tuple[Answer, str]:
    if t.geometry.facts.reason:
        return "no", tr("kvdesk does not know how this memory is saved, so it cannot check it.")
    if not t.geometry.has_attention:
        return "no", tr("A recurrent memory has one state per conversation: there is nothing to compact.")
    if not t.geometry.reorders:
        return "no", tr("Cells of this memory belong to other bytes of its state: kvdesk does not move them.")
    if _sums_by_place(t):
        return "with loss", tr("Used cells move to the front, shared ones stay shared; {rounding}").format(
            rounding=tr(_ROUNDING)
        )
    return "yes", tr("The whole state is saved and restored; used cells move to the front, shared ones stay shared.")


def _quantized_k(t: Traits) -> tuple[Answer, str]:
    if not t.geometry.has_attention:
        return "no", tr("There is no K: the memory is recurrent.")
    if t.settings.flash_attn and any(head % 32 for head in t.head_k if head > 0):
        return "no", tr("K heads are not a multiple of 32 numbers, which flash attention needs for quantized K.")
    return "with loss", tr("Saves memory and, on a CPU, costs speed; K is rounded.")


def _quantized_v(t: Traits) -> tuple[Answer, str]:
    if not t.geometry.has_attention or t.geometry.facts.mla:
        return "no", tr("This memory does not store V separately.")
    if not t.settings.flash_attn:
        return "no", tr("Quantized V needs flash attention: llama.cpp refuses it without.")
    return "with loss", tr("Saves memory and, on a CPU, costs speed; V is rounded.")


def _flash_off(t: Traits) -> tuple[Answer, str]:
    if t.settings.type_v not in FLOAT_TYPES:
        return "no", tr("V is {type_v}, and quantized V needs flash attention.").format(type_v=t.settings.type_v)
    return "yes", tr("Attention then reads every cell up to n_kv, free ones too; its sums depend on where cells lie.")


def _streams(t: Traits) -> tuple[Answer, str]:
    if not t.geometry.has_attention:
        return "yes", tr("It changes nothing: a recurrent memory has one state per conversation anyway.")
    if t.geometry.facts.kind == "dsv4":
        return "yes", tr("This changes nothing: llama.cpp gives each conversation its own cells in this memory.")
    return "yes", tr("Each conversation gets its own n_ctx / n_seq_max cells; none can be shared.")


def _exact(t: Traits) -> tuple[Answer, str]:
    """Whether the setting does what it says."""
    if _sums_by_place(t):
        return "no", tr("Exact answers need flash attention: without it, sums depend on where cells lie.")
    if t.geometry.facts.kind in ("dsa", "dsa_iswa", "hybrid_idx"):
        return "with loss", tr(
            "Only without other conversations or branches in the cache: an indexer's results depend on where cells lie."
        )
    return "yes", tr("With this setting, each answer is bit for bit the same as with an empty cache.")


def _attention(t: Traits) -> tuple[Answer, str]:
    """Whether a second context can compute attention again, and from what."""
    if t.geometry.facts.reason:
        return "no", tr("kvdesk does not know how this memory is saved, so it cannot be copied to a second context.")
    if not t.geometry.has_attention:
        return "no", tr("There is no attention: the memory is recurrent.")
    if t.geometry.facts.kind == "msa":  # models/minimax-m3.cpp:388 picks the K of chosen blocks out of the cache
        return "no", tr("An indexer picks K out of the cache before attention: which cells it picked is unknown.")
    if t.geometry.has_recurrent:
        return "with loss", tr(
            "A recurrent state cannot go back to an earlier token: the text is read again in a second context."
        )
    if t.geometry.facts.has_state:
        return "with loss", tr("Compressed keys cannot be cut short: the text is read again in a second context.")
    if t.geometry.has_window:
        return "with loss", tr(
            "K and V are copied to a second context; what has left the sliding window is read again there."
        )
    return "yes", tr("K and V are copied to a second context, which computes it; the cache stays as it is.")
