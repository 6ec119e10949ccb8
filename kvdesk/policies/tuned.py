"""Every tuned number that decides how kvdesk schedules, keeps and moves things: one table, shown in docs/tuned.md.

A number belongs here when another value would work too. What llama.cpp or the arithmetic fixes follows from these.
"""

from typing import TypeVar

from kvdesk.values import dataclass

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Tuned:
    """One row: `reason` says why such a number exists, `measured` which experiment or source its value is from."""

    name: str
    value: float
    unit: str
    reason: str
    measured: str


TABLE: list[Tuned] = []


def _tuned(name: str, value: Number, unit: str, reason: str, measured: str) -> Number:
    TABLE.append(Tuned(name, value, unit, reason, measured))
    return value


# fmt: off
_BESIDE = "`kvdesk bench cache --only beside`"
# --- what a batch is made of ------------------------------------------------------------------------------------------
TILE = _tuned("TILE", 64, "tokens",
    "From here on llama.cpp computes attention in tiles (GGML_FA_TILE_Q), far less a token over many cells. A chunk "
    "of a prompt beside answers has this size; twice as many are a prefill for the number of threads.",
    _BESIDE + " (docs/developers/reading-beside.md, the knee)")
LONGEST_GAP_MS = _tuned("LONGEST_GAP_MS", 400.0, "ms",
    "Between two tokens of an answer beside which a prompt is read or a job works; two steps where these are longer. "
    "Between two reports of a prompt that is read alone, in whole ubatches.",
    _BESIDE)
LEAST_TOK_S = _tuned("LEAST_TOK_S", 5.0, "tok/s", "Speed of that answer.", _BESIDE)
LEAST_SHARE = _tuned("LEAST_SHARE", 0.25, "of its speed alone",
    "Speed of that answer where `LEAST_TOK_S` is more: what it gets, the prompt loses. The longest gap alone leaves "
    "as much to an answer of 10 tok/s, and more to a slower one.", _BESIDE)
MOST_GAPS = _tuned("MOST_GAPS", 2.5, "longest gaps",
    "A whole tile may take so long where half of it takes as long: a prompt in halves would take twice its time.",
    _BESIDE + ", 1 B parameters")
SCATTER = _tuned("SCATTER", 1.25, "times",
    "A batch may take up to this many times as long as the last one. A chunk aims at the gap divided by this, and may "
    "have this many times its tokens if a prompt ends with them. Beyond it a prompt is called slow or fast.", _BESIDE)
LEAST_CHUNK = _tuned("LEAST_CHUNK", 4, "tokens",
    "Of a prompt or a job beside answers: each batch is a pass over the weights, however small, so a chunk grows "
    "from here on until it takes the gap.", "simulated 8 B parameters (tests/policies/test_batching.py)")
LONGEST_BATCH_MS = _tuned("LONGEST_BATCH_MS", 10000.0, "ms",
    "A ubatch that takes longer is halved, for progress and for whoever asks meanwhile. Halves of small models take up "
    "to 7 % longer, quarters 11 % (1 B parameters: 0.5 %).", "`kvdesk lab run batching`")
# --- threads ----------------------------------------------------------------------------------------------------------
LOAD_INTERVAL_S = _tuned("LOAD_INTERVAL_S", 0.2, "s",
    "Between two readings of the load: the counters have a resolution of 10 ms. One over five times as long says "
    "nothing of now.", "`kvdesk lab run threads`")
HALF_A_CORE = _tuned("HALF_A_CORE", 0.5, "cores",
    "Others that take less change nothing and are not mentioned. A tenth more, the error of a reading, changes the "
    "number of threads.", "`kvdesk lab run threads`")
# --- costs ------------------------------------------------------------------------------------------------------------
KEPT = _tuned("KEPT", 4, "measurements",
    "Over about as many cells: their median counts. This many make a speed usual.",
    "`kvdesk bench cache --only one-busy`")
MASK_NS = _tuned("MASK_NS", 3.0, "ns",
    "In which flash attention sees that a cell is masked, for each token and each head of each layer. Qwen 0.5B: 6 in "
    "a batch of one token, 3 of 32, 4 of 512; SmolLM2 135M: 1.3.",
    "docs/developers/reading-beside.md (idle chats), `kvdesk lab run fragmentation`")
SEEN_NS = _tuned("SEEN_NS", 0.3, "ns",
    "In which a head takes in a number of K or V of a visible cell, until the cost of a cell was measured. Qwen 0.5B: "
    "0.64; SmolLM2 135M: 0.2.", "docs/developers/reading-beside.md (idle chats)")
BYTES_A_MS = _tuned("BYTES_A_MS", 1e6, "bytes/ms",
    "Memory is read and states are moved so quickly until that was measured.", "`kvdesk lab run move-cost`")
PAYS = _tuned("PAYS", 2.0, "times the cost",
    "What a compaction or a saved state must gain. Branches and other programs' requests are missed by so much less.",
    "`kvdesk lab run defrag-policies`")
NOTICED = _tuned("NOTICED", 0.1, "of the time, or s",
    "Less is neither worth a compaction nor mentioned.", "`kvdesk lab run defrag-policies`")
EXPECTED = _tuned("EXPECTED", 256, "tokens",
    "Decoded before the cache changes again: about a long answer.", "`kvdesk lab run defrag-policies`")
# --- what is kept -----------------------------------------------------------------------------------------------------
MIN_REUSE_TOKENS = _tuned("MIN_REUSE_TOKENS", 16, "tokens",
    "Shorter common beginnings are not copied, shorter branches, states and checkpoints are not kept.",
    "`kvdesk lab run prefix-sharing`")
LATELY_S = _tuned("LATELY_S", 600.0, "s",
    "A saved state not used for so long gives way to one that leaves the cache without need.",
    "`kvdesk bench cache --only memory disk`")
CHECKPOINT_PRICE = _tuned("CHECKPOINT_PRICE", 0.05, "of the prefill it may spare",
    "What a checkpoint and its pause may cost.", "tests/backends/local/test_checkpoints.py")
CHECKPOINT_EVERY = _tuned("CHECKPOINT_EVERY", 4096, "tokens",
    "Between two checkpoints of a long prompt.", "llama-server's checkpoints")
CHECKPOINT_MOST = _tuned("CHECKPOINT_MOST", 8, "checkpoints", "Of one conversation.", "llama-server's checkpoints")
CHECKPOINT_SHARE = _tuned("CHECKPOINT_SHARE", 0.5, "of the memory for states",
    "All checkpoints together: they never push out the rest.", "a bound; not measured")
RESERVE = _tuned("RESERVE", 8, "th part of the context",
    "Messages are dropped until it is free where they can be, so that this does not happen at every other token.",
    "tests/backends/local/test_overflow.py")
N_SINKS = _tuned("N_SINKS", 4, "tokens",
    "At the very beginning, which attention leans on.", "Xiao et al., StreamingLLM")
# fmt: on
