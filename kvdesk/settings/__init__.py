"""All settings, each with its default, range, title and description, and llama.cpp's name for it: one declared table.

`Sampling`, `ContextSettings`, `CachePolicy` and what tools have are in the other modules of this folder.
"""

from enum import StrEnum

from pydantic import Field

from kvdesk.settings.cache import CachePolicy, Overflow
from kvdesk.settings.context import CacheType, ContextSettings, default_threads
from kvdesk.settings.preset import Preset
from kvdesk.settings.sampling import RANDOM_SEED, Mirostat, SamplerName, Sampling
from kvdesk.settings.table import Table, llama_name
from kvdesk.settings.tools import ToolBudget, ToolGrant, ToolServer
from kvdesk.translation import marked

__all__ = [
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

_MOST_PIXELS = (1 << 24) - 1
"""No widget of Qt is larger (QWIDGETSIZE_MAX)."""

_LAST_LOCAL_MS = 32_503_680_000_000
"""The year 3000 in Unix time: Windows knows no local times a year later (_localtime64)."""


class ThemeChoice(StrEnum):
    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


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
