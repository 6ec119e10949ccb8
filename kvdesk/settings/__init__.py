"""All settings, each with its default, range, title and description, and llama.cpp's name for it: one declared table.

Those of the samplers are in `kvdesk.settings.sampling`.
"""

import math
import os
import sys
from enum import StrEnum
from typing import Literal

from pydantic import Field

from kvdesk import control_groups
from kvdesk.settings.preset import Preset
from kvdesk.settings.sampling import RANDOM_SEED, Mirostat, SamplerName, Sampling
from kvdesk.settings.table import Table, llama, llama_name
from kvdesk.translation import marked

__all__ = [
    "EXACT_UBATCH",
    "MOST_THREADS",
    "RANDOM_SEED",
    "CachePolicy",
    "CacheType",
    "ContextSettings",
    "KnownServer",
    "Mirostat",
    "Overflow",
    "Preset",
    "SamplerName",
    "Sampling",
    "ServeSettings",
    "Settings",
    "ThemeChoice",
    "ToolBudget",
    "ToolGrant",
    "ToolServer",
    "UsedModel",
    "WindowPlace",
    "default_threads",
    "llama_name",
]

EXACT_UBATCH = 32
"""Largest graph whose sums do not depend on how a prompt was cut: from 64 tokens on (GGML_FA_TILE_Q, ggml-cpu/common.h)
llama.cpp's flash attention works in tiles and adds up in another order. Half of that leaves room for neither."""

MOST_THREADS = 512
"""llama.cpp takes no more (GGML_MAX_N_THREADS, ggml.h)."""

_MOST_PIXELS = (1 << 24) - 1
"""No widget of Qt is larger (QWIDGETSIZE_MAX)."""

_LAST_LOCAL_MS = 32_503_680_000_000
"""The year 3000 in Unix time: Windows knows no local times a year later (_localtime64)."""


class CacheType(StrEnum):
    """Types llama.cpp accepts for K and V (common/arg.cpp, `kv_cache_types`)."""

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    Q8_0 = "q8_0"
    Q4_0 = "q4_0"
    Q4_1 = "q4_1"
    IQ4_NL = "iq4_nl"
    Q5_0 = "q5_0"
    Q5_1 = "q5_1"


class ThemeChoice(StrEnum):
    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


def default_threads() -> int:
    """Physical cores where they can be counted, else logical ones, and no more than this process may use (`taskset`, a
    container): threads that wait for each other's turn take many times as long.
    """
    import psutil

    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    if sys.platform == "linux":
        cores = min(cores, len(os.sched_getaffinity(0)))
    return max(1, math.floor(min(cores, control_groups.processors(), MOST_THREADS)))


class ContextSettings(Table):
    """How a llama.cpp context is created. Changing any of them means a new context."""

    n_ctx: int = Field(
        4096,
        ge=0,
        le=1 << 20,
        title=marked("Context size"),
        json_schema_extra=llama("n_ctx"),
        description=marked(
            "Tokens the KV cache has room for (cells), for all conversations together; "
            "0 takes the length the model was trained for"
        ),
    )
    n_seq_max: int = Field(
        8,
        ge=1,
        le=64,
        title=marked("Sequences"),
        json_schema_extra=llama("n_seq_max"),
        description=marked("Most conversations and branches in the cache at the same time"),
    )
    n_batch: int = Field(
        512,
        ge=1,
        le=16384,
        title=marked("Batch size"),
        json_schema_extra=llama("n_batch"),
        description=marked("Most tokens in one llama_decode call"),
    )
    n_ubatch: int = Field(
        512,
        ge=1,
        le=16384,
        title=marked("Physical batch size"),
        json_schema_extra=llama("n_ubatch"),
        description=marked("Most tokens computed at once, in one graph"),
    )
    exact: bool = Field(
        False,
        title=marked("Exact answers"),
        description=marked(
            "The same answer, bit for bit, as if the prompt was computed without the cache. Off, answers may differ by "
            "rounding. Prompts are read a third slower, one thread writes answers (0.7 of the speed on two cores), and "
            "with most weights each turn reads the last answer again"
        ),
    )
    n_threads: int = Field(
        default_factory=default_threads,
        ge=1,
        le=MOST_THREADS,
        title=marked("Threads"),
        json_schema_extra=llama("n_threads"),
        description=marked("CPU threads for writing answers"),
    )
    n_threads_batch: int = Field(
        default_factory=default_threads,
        ge=1,
        le=MOST_THREADS,
        title=marked("Threads for prompts"),
        json_schema_extra=llama("n_threads_batch"),
        description=marked("CPU threads for reading prompts (prefill)"),
    )
    type_k: CacheType = Field(
        CacheType.F16,
        title=marked("K cache type"),
        json_schema_extra=llama("type_k"),
        description=marked("Data type of K; quantized types such as q8_0 take less memory"),
    )
    type_v: CacheType = Field(
        CacheType.F16,
        title=marked("V cache type"),
        json_schema_extra=llama("type_v"),
        description=marked("Data type of V; quantized types take less memory and need flash attention"),
    )
    flash_attn: bool = Field(
        True,
        title=marked("Flash attention"),
        json_schema_extra=llama("flash_attn"),
        description=marked("Skips masked cells, and allows a quantized V"),
    )
    kv_unified: bool = Field(
        True,
        title=marked("Unified KV cache"),
        json_schema_extra=llama("kv_unified"),
        description=marked("One buffer for all sequences, so that they can share cells; off, each has its own part"),
    )
    swa_full: bool = Field(
        True,
        title=marked("Full-size SWA cache"),
        json_schema_extra=llama("swa_full"),
        description=marked("For models with sliding-window attention: keeps the cells outside the window too"),
    )
    n_rs_seq: int = Field(
        0,
        ge=0,
        le=64,
        title=marked("Earlier states"),
        json_schema_extra=llama("n_rs_seq"),
        description=marked(
            "For hybrid models of LFM2, Qwen3.5, Qwen 4, Nemotron-H, Kimi K3, BailingMoE 3, GLM-5-Next and DeepSeek "
            "V4: states kept of each sequence, so that as many of the last tokens of a batch can be removed again. "
            "Speculative decoding needs them, such as 7. Each one takes the memory of all recurrent states once more"
        ),
    )

    @property
    def graph_tokens(self) -> int:
        """`n_ubatch` as llama.cpp gets it: with `exact` at most `EXACT_UBATCH`."""
        return min(self.n_ubatch, EXACT_UBATCH) if self.exact else self.n_ubatch

    @property
    def decode_threads(self) -> int:
        """`n_threads` as llama.cpp gets it: with `exact` one."""
        return 1 if self.exact else self.n_threads

    @property
    def whole_window(self) -> bool:
        """`swa_full` as llama.cpp gets it: with `exact` on, because a smaller window cache is a ring, in which the
        order of cells depends on what was there before.
        """
        return self.swa_full or self.exact


class Overflow(StrEnum):
    """What happens when a conversation's context is full, in the order in which it is offered.

    Each is declared in the module of `kvdesk.policies.overflow` that has its name.
    """

    STOP = "stop"
    SLIDE = "slide"
    RECOMPUTE = "recompute"
    SINKS = "sinks"
    LEAST_ATTENDED = "least_attended"
    LOW_NORM_KEYS = "low_norm_keys"


class CachePolicy(Table):
    """What kvdesk does with the cache automatically."""

    follow_load: bool = Field(
        True,
        title=marked("Adapt threads to load"),
        description=marked(
            "Fewer threads while other programs are busy. This changes the order in which numbers are added: "
            "in long conversations answers may then differ by rounding"
        ),
    )
    auto_compact: bool = Field(
        True,
        title=marked("Compact automatically"),
        description=marked("Compact the cache between answers when the speed gained is worth the time"),
    )
    save_idle_requests: bool = Field(
        True,
        title=marked("Save idle requests"),
        description=marked(
            "Before another prompt is read, idle chats and requests of other programs are saved to memory if the "
            "speed gained is worth it. Off: their cells stay as long as there is room"
        ),
    )
    drafts: bool = Field(
        False,
        title=marked("Speculative decoding"),
        description=marked(
            "Guess the next tokens of an answer from the text of the chat, and verify several in one batch, if that "
            "is expected to be faster. Texts may differ by rounding"
        ),
    )
    read_once: bool = Field(
        False,
        title=marked("Documents read once"),
        description=marked(
            "What was computed of an attached document is kept and used in other chats, at any place; only its first "
            "32 tokens are read again. Answers may differ a little, and small models give others more often. Not with "
            "exact answers, nor for models whose tokens cannot be moved in the cache. It is deleted with the last chat "
            "that has the document"
        ),
    )
    documents_q8_0: bool = Field(
        False,
        title=marked("Documents as q8_0"),
        description=marked(
            "What is kept of documents read once takes about half of the memory and of the disk space: K and V are "
            "rounded to q8_0, and converted back when they are used. Answers may differ a little more. Applies to "
            "documents that are kept from now on"
        ),
    )
    prefill_ahead: bool = Field(
        False,
        title=marked("Prefill ahead"),
        description=marked(
            "After an answer, read the next tokens of the chat template into the cache, so that your next "
            "message starts sooner"
        ),
    )
    overflow: Overflow = Field(
        Overflow.STOP, title=marked("When full"), description=marked("What new chats do when their context is full")
    )
    n_keep: int = Field(
        0,
        ge=0,
        le=1 << 20,
        title=marked("Tokens to keep"),
        json_schema_extra=llama("n_keep"),
        description=marked("Tokens at the beginning that stay when the oldest messages are removed"),
    )
    memory_mb: int = Field(
        512,
        ge=0,
        le=1 << 20,
        title=marked("Memory for saved conversations (MB)"),
        description=marked("Conversations that are removed from the cache are saved there"),
    )
    disk_mb: int = Field(
        2048,
        ge=0,
        le=1 << 24,
        title=marked("Disk space for saved conversations (MB)"),
        description=marked("Used if that memory is not enough"),
    )


class WindowPlace(Table):
    """Where the window was, as Qt writes it in base64; empty before it was ever shown.

    The other fields, in pixels, are what earlier versions kept. They count while `geometry` and `panes` are empty.
    """

    geometry: str = Field("", description="Of the window")
    panes: str = Field("", description="Of its panes, which keep their widths while folded away")
    x: int = Field(0, ge=-_MOST_PIXELS, le=_MOST_PIXELS, description="Left edge of its frame")
    y: int = Field(0, ge=-_MOST_PIXELS, le=_MOST_PIXELS, description="Upper edge of its frame")
    width: int = Field(0, ge=0, le=_MOST_PIXELS, description="Inside of its frame")
    height: int = Field(0, ge=0, le=_MOST_PIXELS, description="Inside of its frame")
    maximized: bool = Field(False, description="It filled the screen")
    sidebar_width: int = Field(216, ge=0, le=_MOST_PIXELS, description="Of the conversation list")
    inspector_width: int = Field(452, ge=0, le=_MOST_PIXELS, description="Of the cache inspector")


class UsedModel(Table):
    """What is remembered of a model file. tok_s: tokens a second written when it ran last, 0 before that; context: the
    settings that it ran with last.
    """

    path: str = ""
    favourite: bool = False
    used_ms: int = Field(0, ge=0, le=_LAST_LOCAL_MS, description="Unix time of its last opening")
    tok_s: float = Field(0.0, ge=0.0, le=1e9)
    context: ContextSettings | None = None


class KnownServer(Table):
    """A server that was connected. model: its name there, "" the first one; its key is not among the settings."""

    url: str = Field("", max_length=500)
    name: str = Field("", max_length=200)
    model: str = Field("", max_length=500)


class ServeSettings(Table):
    """How other programs were served last (`kvdesk.server`). The key is in its own file."""

    port: int = Field(8080, ge=1, le=65535, title=marked("Port"), description=marked("Programs find kvdesk there"))
    others: bool = Field(
        False,
        title=marked("Allow other computers"),
        description=marked("Only on a network that you trust: there is no encryption"),
    )
    share_prefixes: bool = Field(
        True,
        title=marked("Share cached prompts between programs"),
        description=marked(
            "Saves time. The time to the first token then reveals whether somebody asked something similar"
        ),
    )
    client_share: int = Field(
        100,
        ge=1,
        le=100,
        title=marked("Largest share of one program"),
        description=marked(
            "In percent of the cells, and of the memory for saved conversations, that its earlier requests may keep; "
            "the least recently used go first"
        ),
    )
    inspect: bool = Field(
        False,
        title=marked("Show all prompts and the cache map to programs"),
        description=marked("Your chats too, to programs with the key: another kvdesk can then show this cache"),
    )


class ToolServer(Table):
    """A tool server (MCP): a program on this computer, or an address.

    env, headers  names of what it gets beside; their values are kept as keys are
    left_out      names of its tools that no chat is offered
    signed_in     the keyring has a token for its address
    """

    name: str = Field("", max_length=60)
    command: str = Field("", max_length=2000, description="Program; empty for a server with an address")
    args: tuple[str, ...] = ()
    folder: str = Field("", max_length=2000, description="It starts there; empty: the person's own")
    env: tuple[str, ...] = ()
    url: str = Field("", max_length=2000)
    headers: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    signed_in: bool = False


class ToolGrant(Table):
    """What a user allowed for good. bound: the server's command or address (`kvdesk.tools.servers.bound_to`), so that
    another one of the same name has it not.
    """

    bound: str = ""
    what: Literal["start", "tool", "server"] = "start"
    tool: str = ""


class ToolBudget(Table):
    """How far an answer may go with tools before a user is asked something again."""

    calls: int = Field(
        20,
        ge=1,
        le=1000,
        title=marked("Calls for one question"),
        description=marked("After that the model answers without tools"),
    )
    tokens: int = Field(
        8000,
        ge=100,
        le=1_000_000,
        title=marked("Tokens of results for one question"),
        description=marked("How much of the results the model reads before it must answer"),
    )
    seconds: int = Field(
        300,
        ge=1,
        le=86_400,
        title=marked("Seconds of tools for one question"),
        description=marked("Waiting for you is not counted"),
    )
    call_s: int = Field(
        60, ge=1, le=3600, title=marked("Seconds for one call"), description=marked("After that it is ended")
    )
    result_chars: int = Field(
        16_000,
        ge=500,
        le=1_000_000,
        title=marked("Characters of a result"),
        description=marked("Longer results are cut, and the model gets a note"),
    )


class Settings(Table):
    """Everything that outlives a run."""

    model: str = Field("", description="Path of the model to open at start; empty opens the embedded one")
    server: str = Field("", description="Address of the server to connect to at start, in the place of a model")
    servers: tuple[KnownServer, ...] = Field((), description="Servers that were connected, the last one first")
    safe_mode: bool = Field(
        False,
        title=marked("Safe mode"),
        description=marked(
            "Runs the engine in its own process: if llama.cpp crashes, the model is reloaded and the window stays "
            "open. Takes effect with the next model that is opened"
        ),
    )
    token_probabilities: bool = Field(
        False,
        title=marked("Token probabilities"),
        description=marked(
            "Stores with each new answer how likely its tokens and their alternatives were, and colours it by "
            "surprise. Takes 0.7 % of the time of a token (Qwen 0.5B)"
        ),
    )
    context: ContextSettings = Field(default_factory=ContextSettings)
    sampling: Sampling = Field(default_factory=Sampling)
    cache: CachePolicy = Field(default_factory=CachePolicy)
    system_prompt: str = Field("", description=marked("System prompt of new chats"))
    presets: tuple[Preset, ...] = Field((), description="Presets that the person saved")
    models: tuple[UsedModel, ...] = Field((), description="Favourites, and models that were opened, the last one first")
    model_folders: tuple[str, ...] = Field((), description="Folders of models, besides those of other applications")
    theme: ThemeChoice = Field(
        ThemeChoice.SYSTEM, title=marked("Theme"), description=marked("Light, dark, or that of the system")
    )
    zoom: int = Field(
        100, ge=50, le=200, title=marked("Zoom"), description=marked("Of the whole window (Ctrl++, Ctrl+-, Ctrl+0)")
    )
    font_px: int = Field(
        0, ge=0, le=40, title=marked("Font size"), description=marked("Of the text, in pixels before the zoom")
    )
    language: str = Field(
        "system",
        title="Language / 语言",  # found by whoever does not read the one that is set
        description=marked("Language of the interface; takes effect at the next start"),
    )
    hub_endpoint: str = Field(
        "",
        max_length=500,
        title=marked("Model hub"),
        description=marked(
            "Address to download models from, such as a mirror of Hugging Face; empty: HF_ENDPOINT, or huggingface.co"
        ),
    )
    serve: ServeSettings = Field(default_factory=ServeSettings, description="How other programs were served last")
    tools: ToolBudget = Field(default_factory=ToolBudget, description="Limits of tools in chats")
    tool_servers: tuple[ToolServer, ...] = Field((), description="Tool servers")
    tool_grants: tuple[ToolGrant, ...] = Field((), description="What of them is allowed without a question")
    tour_seen: bool = Field(False, description="The tour was taken: an empty chat offers it no more")
    sidebar_visible: bool = Field(True, description="Conversation list shown (Ctrl+B)")
    inspector_visible: bool = Field(True, description="Cache inspector shown (Ctrl+I)")
    all_instruments: bool = Field(
        False, description="The inspector shows everything, not only the cell map and four numbers (Ctrl+Shift+I)"
    )
    collapsed_folders: tuple[str, ...] = Field((), description="Folders of the conversation list that are collapsed")
    chat: str = Field("", max_length=200, description="The chat that was shown last")
    last_folder: str = Field("", description="Folder of the file that was chosen last in a dialog")
    window: WindowPlace = Field(default_factory=WindowPlace, description="Where the window was")
