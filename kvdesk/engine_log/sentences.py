"""The sentences that programs write about their caches, and which kind of event each of them is.

One table for every program and version. A sentence is matched from its beginning, whatever follows it; upper and lower
case are alike, and blanks of any length. What varies is in signs:

    {n}      a number with the name n       {what:}  the rest of the message
    [...]    may be missing                 <a|b>    one of these
    ~        anything                       \\[       the character itself

Those of llama.cpp are of `tools/server` between November 2025 and November 2026; the level is the one at which
llama-server prints the sentence now.
"""

import re
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What happened. The value is its name in JSON."""

    BY_SIMILARITY = "slot by similarity"
    BY_AGE = "slot by age"
    BY_ID = "slot by id"
    BUSY = "slot busy"
    SIMILARITY = "similarity"
    LOADED = "saved prompt loaded"
    LOAD_FAILED = "saved prompt not loaded"
    DROPPED = "saved prompt dropped"
    CLEARED = "slot cleared"
    ADAPTERS = "adapters changed"
    PURGED = "slot purged"
    NO_ROOM = "no free cells"
    LAUNCHING = "launching"
    STARTED = "started"
    PROMPT = "prompt"
    PREFIX = "prefix"
    CACHED = "cached"
    TIMES = "times follow"
    EVALUATED = "prompt evaluated"
    GENERATED = "generated"
    DRAFTED = "tokens drafted"
    STOPPED = "stopped"
    DONE = "request done"
    BODY = "request body"
    RESPONSE = "response body"
    ERROR = "error"
    CANCELLED = "cancelled"
    OLD_TEXT = "old text"
    NEW_TEXT = "new text"
    FORCED = "full re-processing"
    CHECKED = "checkpoint checked"
    RESTORED = "checkpoint restored"
    CREATED = "checkpoint created"
    INVALIDATED = "checkpoint invalidated"
    ERASED = "checkpoint erased"
    REUSE_OFF = "cache reuse unsupported"
    NEVER_REUSED = "cache reuse disabled"
    CHUNK = "chunk reused"
    SHIFTED = "context shift"
    SLOTS = "slots"
    RAM_LIMIT = "prompt cache limit"
    RAM_OFF = "prompt cache off"
    CHECKPOINT_LIMIT = "checkpoint limit"
    CHECKPOINTS_OFF = "checkpoints off"
    LOADING = "loading model"
    LISTENING = "listening"
    PRESERVES = "template can keep reasoning"
    WINDOW = "sliding window"
    FULL_WINDOW = "full-size window"
    RECURRENT = "recurrent state"
    STATE_READ = "state read"
    LOOKUP = "lookup"
    LOOKUP_FORCED = "lookup refused"
    SUMMARY = "reuse summary"
    KOBOLD_READS = "KoboldCpp reads"
    KOBOLD_ENDED = "KoboldCpp ended"
    KOBOLD_LOADED = "KoboldCpp loaded"
    TABBY = "TabbyAPI metrics"
    OMLX = "oMLX restored"
    TRUNCATED = "prompt truncated"
    MESSAGES_DROPPED = "messages dropped"
    EVICTED = "slot evicted"
    IN_LM_STUDIO = "run by LM Studio"
    REPORT = "report"
    HIT_RATE = "hit rate"
    PREFILL = "prefill batch"
    DECODE = "decode batch"
    PREEMPTED = "preempted"
    SWAPPED = "swapped"
    RETRACTED = "retracted"
    REUSE_ENABLED = "prefix cache on"
    REUSE_DISABLED = "prefix cache off"
    RADIX_OFF = "radix cache off"
    BLOCK = "block size"
    TOO_SMALL = "cache too small"
    NO_MEMORY = "no memory for the cache"
    METRIC = "metric"


AT_BEGIN: Final = frozenset(
    {Kind.PROMPT, Kind.PREFIX, Kind.REUSE_OFF, Kind.CHECKED, Kind.FORCED, Kind.RESTORED, Kind.INVALIDATED}
)
"""What llama-server says of a request before the first token of its prompt is read."""

_POSITIONS: Final = "~pos_min = {first}, pos_max = {last}[, n_tokens = {n}]"
_ERASED: Final = (
    "erased invalidated <context|swa> checkpoint" + _POSITIONS + "[, n_swa = {window}][, pos_next = {next}]"
)
_TIMES: Final = "time = {ms} ms / {n}"
_SIMILARITY: Final = (
    "selected slot by <lcp|lcs> similarity,[~similarity = {sim}]"
    "[~sim_best = {sim_best} (> {threshold}][~f_keep = {keep}]"
)
_PREFIX: Final = (
    "n_past = {same}, <slot.prompt.tokens|cache_tokens>.size() = {held}, seq_id = {seq}, pos_min = {first}"
    "[, n_swa = {window}]"
)

SERVER: Final = (
    (3, Kind.BY_SIMILARITY, _SIMILARITY),
    (3, Kind.BY_AGE, "selected slot by LRU"),
    (3, Kind.BY_ID, "selected slot by id"),
    (4, Kind.BUSY, "skipping, is_processing"),
    (4, Kind.SIMILARITY, "checking sim = {sim} ({same}/{n}) > {threshold}"),
    (4, Kind.LOADED, "found better prompt with f_keep = {keep}[, <f_|>sim = {sim}]"),
    (2, Kind.LOAD_FAILED, "failed to <load prompt from cache|restore state>"),
    (2, Kind.DROPPED, "making room for prompt cache entry, removing oldest entry[ (size = {mib}]"),
    (2, Kind.DROPPED, "cache <size|token> limit ~removing oldest entry[ (size = {mib}]"),
    (2, Kind.DROPPED, "prompt state size {mib} MiB exceeds cache size limit"),
    (4, Kind.CLEARED, "clearing prompt with {n} tokens"),
    (4, Kind.ADAPTERS, "clearing cache for lora change"),
    (2, Kind.PURGED, "purging slot {slot} with {n} tokens"),
    (2, Kind.NO_ROOM, "failed to find free space in the kv cache"),
    (5, Kind.LAUNCHING, "launching slot : {json:}"),
    (3, Kind.STARTED, "processing task[, is_child = {child}]"),
    (4, Kind.PROMPT, "new prompt, n_ctx_slot = {ctx}, n_keep = {keep}, <task.n_tokens|n_prompt_tokens> = {n}"),
    (4, Kind.PREFIX, _PREFIX),
    (4, Kind.CACHED, "cached n_tokens = {n}, memory_seq_rm"),
    (4, Kind.CACHED, "n_tokens = {n}, memory_seq_rm"),
    (4, Kind.CACHED, "kv cache rm \\[{n}, end)"),
    (3, Kind.EVALUATED, "prompt eval " + _TIMES),
    (3, Kind.GENERATED, "eval " + _TIMES),
    (3, Kind.DRAFTED, "draft acceptance[ rate] = {share}"),
    (3, Kind.STOPPED, "stop processing: n_<tokens|past> = {n}, truncated = {truncated}"),
    (4, Kind.DONE, "done request: {method:}"),
    (5, Kind.BODY, "request: {json:}"),
    (5, Kind.RESPONSE, "response: {json:}"),
    (1, Kind.ERROR, "task id = {task}, error: {what:}"),
    (2, Kind.CANCELLED, "cancel task, id_task = {task}"),
    (2, Kind.OLD_TEXT, "old: ... {text:}"),
    (2, Kind.NEW_TEXT, "new: ... {text:}"),
    (4, Kind.FORCED, "forcing full prompt re-processing"),
    (4, Kind.CHECKED, "checking checkpoint with \\[{first}, {last}] against {against}..."),
    (4, Kind.RESTORED, "restored <context|swa> checkpoint" + _POSITIONS),
    (4, Kind.CREATED, "created <context|swa> checkpoint {number} of {limit}" + _POSITIONS + "[~size = {mib}]"),
    (4, Kind.INVALIDATED, _ERASED),
    (2, Kind.ERASED, "erasing old <context|swa> checkpoint" + _POSITIONS),
    (4, Kind.ERASED, "erasing context checkpoint" + _POSITIONS),
    (2, Kind.REUSE_OFF, "cache reuse is not supported - ignoring n_cache_reuse = {n}"),
    (2, Kind.NEVER_REUSED, "cache_reuse is not supported by {what:}"),
    (4, Kind.CHUNK, "reusing chunk with size {n}"),
    (2, Kind.SHIFTED, "slot context shift, n_keep = {keep}, n_left = {left}, n_discard = {n}"),
    (3, Kind.SLOTS, "initializing[ slots], n_slots = {n}[, n_ctx_slot = {ctx}][, kv_unified = '{unified:}]"),
    (4, Kind.RAM_LIMIT, "prompt cache is enabled, size limit: <no limit|{mib} MiB>"),
    (4, Kind.RAM_OFF, "prompt cache is disabled"),
    (4, Kind.CHECKPOINT_LIMIT, "context checkpoints enabled, max = {n}"),
    (4, Kind.CHECKPOINTS_OFF, "context checkpoints disabled"),
    (3, Kind.LOADING, "loading model {name:}"),
    (3, Kind.LISTENING, "listening on {url:}"),
    (3, Kind.LISTENING, "server is listening on {url:}"),
    (3, Kind.PRESERVES, "chat template supports preserving reasoning, consider"),
)  # fmt: skip
"""Level, kind and sentence of llama-server, behind the head of a line (`slot update_slots: id 0 | task 1 | `)."""

ENGINE: Final = (
    (Kind.WINDOW, "<llama_kv_cache_iswa|llama_kv_cache_unified_iswa>: creating SWA KV cache, size = {n}"),
    (Kind.FULL_WINDOW, "<llama_kv_cache_iswa|llama_kv_cache_unified_iswa>: using full-size SWA cache"),
    (Kind.RECURRENT, "llama_memory_recurrent: size ="),
    (Kind.STATE_READ, "state_read_meta: cell_count = {n}, dest_seq_id = {slot}"),
    (Kind.EVALUATED, "<llama_perf_context_print|llama_print_timings>: prompt eval " + _TIMES),
    (Kind.GENERATED, "<llama_perf_context_print|llama_print_timings>: eval " + _TIMES),
    (Kind.EVALUATED, "prompt eval " + _TIMES),
    (Kind.GENERATED, "eval " + _TIMES),
    (Kind.LOOKUP, "Llama.generate: {used} prefix-match hit, remaining {remaining} prompt tokens"),
    (Kind.LOOKUP_FORCED, "Llama.generate: {used} prefix-match found but partial kv removal not supported"),
    (Kind.SUMMARY, "Cache reuse summary: {used}/{n} of prompt"),
    (Kind.LOADING, "llama_model_loader: loaded meta data ~ from {name:}"),
    (Kind.IN_LM_STUDIO, "LlamaV4"),
    (Kind.LISTENING, "main: server is listening on {url:}"),
)
"""Kind and sentence of the engine under llama-server, of llama-cpp-python and of LM Studio: whole lines."""

_BATCH: Final = "[~token usage: {usage}][~#running-req: {running}][~#queue-req: {waiting}]"
_REPORT: Final = (
    "[Engine {engine}: ]Avg prompt throughput: {prompt} tokens/s, ~Running: {running} reqs, [Swapped: {swapped} reqs, "
    "]<Waiting|Pending>: {waiting} reqs, [Deferred: {deferred} reqs, ][Preemptions: {preempted}, ][GPU ]KV cache "
    "usage: {usage}%[, Prefix cache hit rate: {hit}%][~External prefix cache hit rate: {external}%]"
)
_KOBOLD: Final = (
    "CtxLimit:[ ]{used}/{ctx}, [Amt:{generated}/{limit}, ]~Process:{s}s (~{speed}T/s), "
    "Generate:{generated_s}s (~{generated_speed}T/s)"
)
_KOBOLD_2026: Final = (
    "CtxLimit:[ ]{used}/{ctx}, ~Processed:{read} in {s}s (~Generated:{generated}/{limit} in {generated_s}s"
)
_TABBY: Final = (
    "{generated} tokens generated in ~Process: {used} cached tokens and {remaining} new tokens at "
    "<Indeterminate|{speed}> T/s, Generate: <Indeterminate|{generated_speed}> T/s"
)
_OMLX: Final = (
    "prefix cache: request ~ re-prefills {remaining} of {n} tokens (reused {used})"
    "[; closest stored sequence ~ shares the first {matched} of {stored} comparable tokens]"
)

ANYWHERE: Final = (
    (Kind.REPORT, _REPORT),
    (Kind.HIT_RATE, "Prefix cache hit rate: GPU: {hit}%"),
    (Kind.PREEMPTED, "is preempted by PreemptionMode.RECOMPUTE ~total_num_cumulative_preemption={n}"),
    (Kind.SWAPPED, "is preempted by PreemptionMode.SWAP ~total_num_cumulative_preemption={n}"),
    (Kind.PREFILL, "Prefill batch~#new-token: {read}, #cached-token: {cached}" + _BATCH),
    (Kind.DECODE, "Decode batch~#running-req: {running}[~token usage: {usage}][~#queue-req: {waiting}]"),
    (Kind.RETRACTED, "[TP{rank}\\] ]<KV cache pool is full.|Decode out of memory happened.>~#retracted_reqs: {n}"),
    (Kind.REUSE_DISABLED, "<enable_prefix_caching=|'enable_prefix_caching': >False"),
    (Kind.REUSE_ENABLED, "<enable_prefix_caching=|'enable_prefix_caching': >True"),
    (Kind.RADIX_OFF, "disable_radix_cache=True"),
    (Kind.BLOCK, "Setting attention block size to {n} tokens"),
    (Kind.TOO_SMALL, "max seq len ({want}) is larger than ~tokens that can be stored in KV cache ({have})"),
    (Kind.TOO_SMALL, "max seq len ({want}), ~larger than the available KV cache memory[~model length is {have}]"),
    (Kind.NO_MEMORY, "failed to allocate buffer for kv cache"),
    (Kind.NO_ROOM, "failed to find free space in the KV cache"),
    (Kind.KOBOLD_READS, "Processing Prompt[ \\[<BLAS|BATCH>\\]] ({done} / {read} tokens)"),
    (Kind.KOBOLD_ENDED, _KOBOLD),
    (Kind.KOBOLD_ENDED, _KOBOLD_2026),
    (Kind.PREFIX, "======== Cache: cache_size = {held}, [n_past0 = {exact}, ]<n_past1|n_past> = {same},"),
    (Kind.KOBOLD_LOADED, "SmartCache[ RNN] Match of {n} tokens"),
    (Kind.TABBY, _TABBY),
    (Kind.OMLX, _OMLX),
    (Kind.OMLX, "Prefix cache restore for ~ cached={used} suffix={remaining}"),
    (Kind.SUMMARY, "Prompt cache restore: cached_tokens={used} uncached_tokens={remaining}"),
)
"""Kind and sentence of vLLM, SGLang, ik_llama.cpp, KoboldCpp, TabbyAPI, oMLX and LM Studio's MLX: anywhere in a line,
as each logs otherwise.
"""

KEYED: Final = {
    "slot is processing task": Kind.STARTED,
    "kv cache rm [p0, end)": Kind.CACHED,
    "slot released": Kind.STOPPED,
    "request": Kind.DONE,
    "input truncated": Kind.TRUNCATED,
}
"""Messages of ik_llama.cpp, and of llama-server in 2024, before what varies."""

OLLAMA: Final = {
    "loading cache slot": Kind.LOOKUP,
    "cache hit": Kind.LOOKUP,
    "cache miss": Kind.LOOKUP,
    "truncating input prompt": Kind.TRUNCATED,
    "truncating input messages which exceed context length": Kind.MESSAGES_DROPPED,
    "context limit hit - shifting": Kind.SHIFTED,
    "evicting cache slot": Kind.EVICTED,
}
"""Messages of Ollama's own runners, in lower case. Since 2026 Ollama runs llama-server too, and passes its lines on."""

_SIGN: Final = re.compile(r"\{(\w+)(:?)\}|\\(.)|(\s+)|(.)", re.DOTALL)
_SIGNS: Final = {"[": "(?:", "]": ")?", "<": "(?:", ">": ")", "|": "|", "~": ".*?"}


def compiled(sentence: str) -> re.Pattern[str]:
    """The pattern of a sentence. A `>` without its `<`, as in `(> {threshold}`, is itself; so is a `]` without `[`."""
    out, is_open = "", ""
    for name, rest, escaped, blank, sign in (match.groups() for match in _SIGN.finditer(sentence)):
        if name:
            out += rf"(?P<{name}>.*)" if rest else rf"(?P<{name}>-?[\d.]{{1,18}})"
        elif escaped:
            out += re.escape(escaped)
        elif blank:
            out += r"\s+"
        elif sign in "]>" and (not is_open or is_open[-1] != {"]": "[", ">": "<"}[sign]):
            out += re.escape(sign)
        else:
            out += _SIGNS.get(sign, re.escape(sign))
            is_open = is_open[:-1] if sign in "]>" else is_open + (sign if sign in "[<" else "")
    return re.compile(out, re.IGNORECASE | re.DOTALL)


def first_words(sentence: str) -> list[str]:
    """The words with which a sentence may begin, in lower case."""
    start = sentence.lstrip("<")
    words = start[: start.index(">")].split("|") if sentence.startswith("<") else [start]
    return [re.match(r"\w+", word)[0].lower() for word in words]  # type: ignore[index]


def _begin(sentence: str) -> str:
    """The pattern of the words with which a sentence begins, up to what varies."""
    words = re.match(r"<([^>]*)>|[^{\[<~\\]+", sentence)
    assert words is not None
    return f"(?:{words[1]})" if words[1] else re.escape(words[0].strip()).replace(r"\ ", " +")


_DEBUG: Final = r"\d+\.\d\d\.\d{3}\.\d{3} D "
_SAYS: Final = "|".join(sorted({_begin(sentence) for _, _, sentence in SERVER}))
_NOTHING: Final = rf" +[^\s|:]{{0,30}}: *+(?:id +-?\d{{1,9}} \| task -?\d{{1,9}} \|)?+[ -]*+(?!(?i:{_SAYS}))"
_OF_ENGINE: Final = "|".join(["find_slot", *(word for _, sentence in ENGINE for word in first_words(sentence))])
IDLE_SLOT: Final = rf"{_DEBUG}slot{_NOTHING}[^\r\n]*\n"
IDLE_OTHER: Final = rf"{_DEBUG}(?:(?:que|res) |srv{_NOTHING}|(?!slot|srv|{_OF_ENGINE})[a-z]\w+: )[^\r\n]*\n"
"""Patterns of lines of level 5, of slots and others, that say nothing about the cache: most of them."""
