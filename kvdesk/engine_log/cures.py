"""What helps against a miss, by name: one line per option or variable, and what it does."""

from collections.abc import Iterable
from typing import Final

from kvdesk.engine_log.other_programs import KOBOLD, LLAMA_CPP_PYTHON, OMLX
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class Cure:
    """`name`: what one types; `what`: what it does, in the source's language.

    others  the name in programs other than llama-server (`Server.name`), "" if it has none. Ollama gives its
            environment to the llama-server that it runs, and LM Studio takes the options of llama.cpp
    """

    name: str
    what: str
    others: tuple[tuple[str, str], ...] = ()

    def sentence(self) -> str:
        """In the language of the program."""
        return f"{self.name}: {tr(self.what)}"


def cures_of(program: str, cures: Iterable[Cure]) -> tuple[Cure, ...]:
    """Those that the program has, under the names they have there."""
    named = ((cure, dict(cure.others).get(program, cure.name)) for cure in cures)
    return tuple(replace(cure, name=name) for cure, name in named if name)


_IN_OLLAMA: Final = "llama-server in Ollama"
_SGLANG: Final = "SGLang"
_OLLAMA_SLOTS: Final = "OLLAMA_NUM_PARALLEL=N"
_OLLAMA_CONTEXT: Final = "OLLAMA_CONTEXT_LENGTH=N or num_ctx"


def _not_in(*programs: str) -> tuple[tuple[str, str], ...]:
    return tuple((program, "") for program in programs)


_SERVER_ONLY: Final = _not_in("Ollama", _IN_OLLAMA, LLAMA_CPP_PYTHON, KOBOLD, OMLX)


ATTRIBUTION: Final = Cure(
    "CLAUDE_CODE_ATTRIBUTION_HEADER=0",
    marked("in the environment of Claude Code, keeps the checksum out of its system prompt"),
)
PRESERVE_THINKING: Final = Cure(
    "--chat-template-kwargs '{\"preserve_thinking\": true}'",
    marked("or --reasoning-preserve if the template supports it: earlier reasoning stays in the prompt"),
    _not_in("Ollama", _IN_OLLAMA, KOBOLD),
)
SWA_FULL: Final = Cure(
    "--swa-full",
    marked("keeps all cells of a sliding window, for more memory"),
    ((LLAMA_CPP_PYTHON, "Llama(swa_full=True)"), ("Ollama", ""), (_IN_OLLAMA, "LLAMA_ARG_SWA_FULL=1")),
)
CHECKPOINTS: Final = Cure(
    "--ctx-checkpoints N, --checkpoint-min-step N",
    marked("more checkpoints, closer together: one before the difference is enough"),
    (
        (LLAMA_CPP_PYTHON, "llama-server instead of Llama"),
        ("Ollama", ""),
        (_IN_OLLAMA, "LLAMA_ARG_CTX_CHECKPOINTS=N, LLAMA_ARG_CHECKPOINT_MIN_SPACING_NT=N"),
    ),
)
CACHE_RAM: Final = Cure(
    "--cache-ram MIB",
    marked("more memory for the prompts of other conversations (-1: no limit)"),
    (*_not_in("Ollama", LLAMA_CPP_PYTHON, KOBOLD, OMLX), (_IN_OLLAMA, "LLAMA_ARG_CACHE_RAM=MIB")),
)
NO_CACHE_REUSE: Final = Cure(
    "no --cache-reuse",
    marked("it needs a memory that can be shifted: not with windows, recurrent states or images"),
    ((_IN_OLLAMA, "LLAMA_ARG_CACHE_REUSE=0"),),
)
NO_MEDIA: Final = Cure("no --mmproj", marked("for texts alone, if it is images that prevent it"), _SERVER_ONLY)
SIMILARITY: Final = Cure(
    "--slot-prompt-similarity 0.01", marked("accepts a slot with a shorter common beginning"), _SERVER_ONLY
)
ID_SLOT: Final = Cure('"id_slot": N in the request', marked("pins a conversation to its slot"), _SERVER_ONLY)
KEEP_IDLE: Final = Cure(
    "--no-cache-idle-slots", marked("or no id_slot: prompts saved in memory are looked up then"), _SERVER_ONLY
)
PARALLEL: Final = Cure(
    "-np N",
    marked("more slots, so that conversations do not push each other out"),
    (
        *(("Ollama", _OLLAMA_SLOTS), (_IN_OLLAMA, _OLLAMA_SLOTS), (LLAMA_CPP_PYTHON, "llama-server -np N")),
        *((KOBOLD, "--smartcache N"), (OMLX, "")),
    ),
)
UNIFIED: Final = Cure(
    "--kv-unified",
    marked("one cache for all slots: a long prompt may use the cells of the others"),
    ((_IN_OLLAMA, "LLAMA_ARG_KV_UNIFIED=1"),),
)
CONTEXT: Final = Cure(
    "-c N",
    marked("a larger context"),
    (
        *(("Ollama", _OLLAMA_CONTEXT), (_IN_OLLAMA, _OLLAMA_CONTEXT), (LLAMA_CPP_PYTHON, "Llama(n_ctx=N)")),
        (KOBOLD, "--contextsize N"),
    ),
)
BATCH: Final = Cure(
    "-ub N, -b N",
    marked("larger batches, each as large as the longest input"),
    ((LLAMA_CPP_PYTHON, "Llama(n_ubatch=N, n_batch=N)"), (_IN_OLLAMA, "LLAMA_ARG_UBATCH=N, LLAMA_ARG_BATCH=N")),
)
SMALLER_CONTEXT: Final = Cure(
    "-c N",
    marked("a smaller context"),
    (("Ollama", _OLLAMA_CONTEXT), (_IN_OLLAMA, _OLLAMA_CONTEXT), (LLAMA_CPP_PYTHON, "Llama(n_ctx=N)")),
)
CACHE_TYPES: Final = Cure(
    "-ctk q8_0 -ctv q8_0",
    marked("K and V of half the size"),
    ((_IN_OLLAMA, "OLLAMA_KV_CACHE_TYPE=q8_0"), (LLAMA_CPP_PYTHON, "Llama(type_k=8, type_v=8)")),
)
FEWER_SLOTS: Final = Cure(
    "-np N", marked("fewer requests at once"), (("Ollama", _OLLAMA_SLOTS), (_IN_OLLAMA, _OLLAMA_SLOTS))
)
POOL_MEMORY: Final = Cure(
    "--gpu-memory-utilization N",
    marked("a larger share of the memory for the cache"),
    ((_SGLANG, "--mem-fraction-static N"),),
)
POOL_REQUESTS: Final = Cure(
    "--max-num-seqs N", marked("fewer requests at once"), ((_SGLANG, "--max-running-requests N"),)
)
POOL_CONTEXT: Final = Cure("--max-model-len N", marked("a shorter context"), ((_SGLANG, "--context-length N"),))
POOL_CAREFUL: Final = Cure(
    "--schedule-conservativeness 1.3",
    marked("begins fewer requests beside those that write, if this happens often"),
    _not_in("vLLM"),
)
POOL_REUSE: Final = Cure(
    "--enable-prefix-caching",
    marked("keeps what was computed of earlier prompts"),
    ((_SGLANG, "no --disable-radix-cache"), ("llama-server", "")),
)
COMPARE: Final = Cure("kvdesk proxy --to URL", marked("shows where the prompts of a client differ"))
CACHE_PROMPT: Final = Cure(
    '"cache_prompt": true in the request', marked("or no --no-cache-prompt: the slot is compared at all"), _SERVER_ONLY
)
STABLE_FRONT: Final = Cure(
    "a stable beginning", marked("put what changes (date, ids, reminders) at the end of the prompt, after the chat")
)
STABLE_TOOLS: Final = Cure(
    "stable tools", marked("the same tools in the same order in every request of a conversation")
)
STABLE_SETTINGS: Final = Cure(
    "stable settings", marked("the same thinking, effort and template arguments in every request of a conversation")
)
APPEND_ONLY: Final = Cure("append only", marked("earlier messages stay as they were sent: role, text and place"))
WHOLE_CUTS: Final = Cure(
    "fewer, larger cuts", marked("if the client must drop messages: each cut is read again only once")
)
READ_ONCE: Final = Cure(
    "one request after a restore",
    marked("a slot file has no checkpoints: the first request reads the prompt and makes new ones"),
)
NO_SHIFT: Final = Cure(
    "no --context-shift",
    marked("or a larger -c: a shifted slot is no longer the prompt that clients send"),
    _SERVER_ONLY,
)
LOG_TEXT: Final = "LLAMA_SERVER_SLOTS_DEBUG=1 LLAMA_SERVER_SLOTS_N_DIFF=24 llama-server -lv 4"
"""The level at which llama-server prints checkpoints, slots and the text around the first difference."""
LOG_BODIES: Final = "llama-server -lv 5"
"""Prints requests too: with them doctor names the message. Such a log holds prompts."""
LOG_NEXT: Final = marked("one more request: llama-server prints a text with the next request of its slot")
"""At level 5."""
LOG_INSIDE: Final = {"Ollama": "OLLAMA_DEBUG=1", "LM Studio": "LM Studio's developer log, verbose"}
"""By the program that runs llama-server."""
