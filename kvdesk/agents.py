"""Agents that `kvdesk launch` starts: how each finds a server, and the settings that keep its cache warm.

One table. An agent gets environment variables and options for one run; none of the user's files is written, and
nothing here touches what the agent may do.
"""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from kvdesk.loose_json import json_value
from kvdesk.translation import marked
from kvdesk.values import dataclass

Where = Literal["env", "option", "config", "json"]
HIDDEN: Final = "…"
"""Stands for the key where settings are shown."""
_TIMEOUT_MS: Final = "3600000"
_REMOVED: Final = re.compile(
    r"[A-Z0-9_]*_API_KEYS?|(?:ANTHROPIC|OPENAI|AZURE_OPENAI|CLAUDE_CODE_OAUTH|CLAUDE_CODE_USE|OPENCODE_AUTH)_\w+"
    r"|AIDER_(?:MODEL|API_KEY|\w+_API_\w+)|AWS_BEARER_TOKEN_BEDROCK|CODEX_ACCESS_TOKEN|OPENCODE_CONSOLE_TOKEN"
)
"""Variables with keys and addresses of model services. Tokens of other tools (git, cloud commands) stay."""


@dataclass(frozen=True, slots=True)
class Place:
    """A server: `root` without a path, such as http://127.0.0.1:8080; its key; the name of its model; tokens of one
    conversation.
    """

    root: str
    key: str
    model: str
    n_ctx: int

    @property
    def values(self) -> dict[str, str]:
        """What stands for the names in braces in `Setting.value`. `n_answer`: a quarter of the context."""
        return {
            "root": self.root,
            "url": f"{self.root}/v1",
            "key": self.key,
            "model": re.sub(r"[^A-Za-z0-9.-]+", "-", self.model).strip("-.") or "model",
            "n_ctx": str(self.n_ctx),
            "n_answer": str(self.n_ctx // 4),
            "n_compact": str(self.n_ctx * 3 // 4),
        }


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    where   "env" a variable; "option" `--name value`; "config" `-c name=value`; "json" a field of the JSON text in the
            agent's `json_variable`, its names separated by "/"
    value   with names of `Place.values` in braces; for "json" as JSON, or a text
    reason  why, for a user; "": it is part of the connection
    """

    where: Where
    name: str
    value: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Agent:
    """`name`: of the command; `install`: a command that gets it; `without`: variables that it must not have."""

    name: str
    title: str
    install: str
    settings: tuple[Setting, ...]
    json_variable: str = ""
    without: tuple[str, ...] = ()

    def variables(self, place: Place) -> dict[str, str]:
        """What its environment gets."""
        found = {s.name: _filled(s.value, place) for s in self.settings if s.where == "env"}
        if self.json_variable:
            found[self.json_variable] = json.dumps(self._document(place))
        return found

    def options(self, place: Place) -> list[str]:
        """What its command line begins with."""
        found: list[str] = []
        for s in self.settings:
            name, value = _filled(s.name, place), _filled(s.value, place)
            if s.where == "config":
                found += ["-c", f"{name}={value}"]
            elif s.where == "option":
                found += [f"--{name}", value]
        return found

    def shown(self, place: Place) -> list[tuple[str, str]]:
        """Each setting as it is given, with its reason; the key is hidden."""
        hidden = Place(place.root, HIDDEN, place.model, place.n_ctx)
        return [(f"{_filled(s.name, hidden)}={_filled(s.value, hidden)}", s.reason) for s in self.settings]

    def line(self, place: Place, *, windows: bool = False) -> str:
        """One line for a terminal that starts it with the same settings. `windows`: as PowerShell wants it."""
        quote = _quoted_for_powershell if windows else shlex.quote
        command = " ".join([self.name, *map(quote, self.options(place))])
        variables = self.variables(place).items()
        if windows:
            return "; ".join([*(f"$env:{name}={quote(value)}" for name, value in variables), command])
        return " ".join([*(f"{name}={quote(value)}" for name, value in variables), command])

    def _document(self, place: Place) -> dict[str, Any]:
        document: dict[str, Any] = {}
        for s in self.settings:
            if s.where == "json":
                *path, last = (_filled(part, place) for part in s.name.split("/"))
                inner = document
                for part in path:
                    inner = inner.setdefault(part, {})
                value = _filled(s.value, place)
                inner[last] = json_value(value, value)
        return document


def environment(variables: Mapping[str, str], agent: Agent, place: Place) -> tuple[dict[str, str], list[str]]:
    """The environment of the agent, and the names of what was removed from `variables`: keys of model services. A proxy
    is not asked for the server.
    """
    removed = sorted(name for name in variables if _REMOVED.fullmatch(name.upper()) or name.upper() in agent.without)
    found = {name: value for name, value in variables.items() if name not in removed}
    host = urlsplit(place.root).hostname or ""
    for name in ("NO_PROXY", "no_proxy"):
        found[name] = ",".join(part for part in (variables.get(name, ""), host) if part)
    return found | agent.variables(place), removed


def _filled(text: str, place: Place) -> str:
    """With the values of the place: a key may contain braces, so all are put in at once."""
    values = place.values
    return re.sub(r"\{(\w+)\}", lambda match: values[match[1]], text)


def _quoted_for_powershell(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _env(values: Iterable[tuple[str, str]], reason: str = "") -> tuple[Setting, ...]:
    return tuple(Setting("env", name, value, reason) for name, value in values)


_NO_NEWS: Final = marked("no telemetry and no updates: this run contacts only this server")
_OWN_SIZE: Final = marked("the agent compacts before this context is full: compacting reads everything again")
_FEW_REQUESTS: Final = marked("no extra requests with other prompts, which would take room in the cache")
_LONG_PROMPT: Final = marked("a long prompt takes minutes on a processor")

_CLAUDE = Agent(
    "claude",
    "Claude Code",
    "npm install -g @anthropic-ai/claude-code",
    (
        *_env((("ANTHROPIC_BASE_URL", "{root}"), ("ANTHROPIC_AUTH_TOKEN", "{key}"), ("ANTHROPIC_MODEL", "{model}"))),
        *_env(
            (
                ("ANTHROPIC_DEFAULT_OPUS_MODEL", "{model}"),
                ("ANTHROPIC_DEFAULT_SONNET_MODEL", "{model}"),
                ("ANTHROPIC_DEFAULT_HAIKU_MODEL", "{model}"),
                ("CLAUDE_CODE_SUBAGENT_MODEL", "{model}"),
            ),
            marked("one model for everything, with one cache"),
        ),
        *_env(
            (("CLAUDE_CODE_ATTRIBUTION_HEADER", "0"),),
            marked(
                "a header before the system prompt changes with each conversation: everything after it would be read "
                "again"
            ),
        ),
        *_env((("ENABLE_TOOL_SEARCH", "false"),), marked("tools that are added later would change the beginning")),
        *_env(
            (("CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION", "false"), ("CLAUDE_CODE_DISABLE_TERMINAL_TITLE", "1")),
            _FEW_REQUESTS,
        ),
        *_env(
            (("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "{n_ctx}"), ("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "{n_answer}")), _OWN_SIZE
        ),
        *_env((("API_TIMEOUT_MS", _TIMEOUT_MS),), _LONG_PROMPT),
        *_env(
            (
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
                ("DISABLE_TELEMETRY", "1"),
                ("DISABLE_ERROR_REPORTING", "1"),
                ("DISABLE_AUTOUPDATER", "1"),
            ),
            _NO_NEWS,
        ),
    ),
)

_CODEX = Agent(
    "codex",
    "Codex",
    "npm install -g @openai/codex",
    (
        *_env((("KVDESK_API_KEY", "{key}"),)),
        Setting("config", "model_provider", "kvdesk"),
        Setting("config", "model_providers.kvdesk.name", "kvdesk"),
        Setting("config", "model_providers.kvdesk.base_url", "{url}"),
        Setting("config", "model_providers.kvdesk.env_key", "KVDESK_API_KEY"),
        Setting("config", "model_providers.kvdesk.wire_api", "responses"),
        Setting("config", "model", "{model}"),
        Setting("config", "model_context_window", "{n_ctx}", _OWN_SIZE),
        Setting("config", "model_auto_compact_token_limit", "{n_compact}", _OWN_SIZE),
        Setting("config", "model_providers.kvdesk.stream_idle_timeout_ms", _TIMEOUT_MS, _LONG_PROMPT),
        Setting(
            "config",
            "web_search",
            "disabled",
            marked("a search that runs in the cloud, which this server does not have"),
        ),
        Setting("config", "analytics.enabled", "false", _NO_NEWS),
        Setting("config", "check_for_update_on_startup", "false", _NO_NEWS),
    ),
)

_OPENCODE = Agent(
    "opencode",
    "opencode",
    "npm install -g opencode-ai",
    (
        Setting("json", "provider/kvdesk/npm", "@ai-sdk/openai-compatible"),
        Setting("json", "provider/kvdesk/name", "kvdesk"),
        Setting("json", "provider/kvdesk/options/baseURL", "{url}"),
        Setting("json", "provider/kvdesk/options/apiKey", "{key}"),
        Setting("json", "provider/kvdesk/models/{model}/name", "{model}"),
        Setting("json", "provider/kvdesk/models/{model}/tool_call", "true"),
        Setting("json", "model", "kvdesk/{model}"),
        Setting("json", "small_model", "kvdesk/{model}", marked("one model for everything, with one cache")),
        Setting("json", "enabled_providers", '["kvdesk"]', marked("no other service is contacted in this run")),
        Setting("json", "provider/kvdesk/models/{model}/limit/context", "{n_ctx}", _OWN_SIZE),
        Setting("json", "provider/kvdesk/models/{model}/limit/output", "{n_answer}", _OWN_SIZE),
        Setting(
            "json",
            "compaction/prune",
            "false",
            marked("removing tool results from earlier messages changes everything after them"),
        ),
        Setting("json", "provider/kvdesk/options/timeout", "false", _LONG_PROMPT),
        Setting("json", "share", "disabled", _NO_NEWS),
        Setting("json", "autoupdate", "false", _NO_NEWS),
        *_env((("OPENCODE_DISABLE_MODELS_FETCH", "1"),), _NO_NEWS),
    ),
    json_variable="OPENCODE_CONFIG_CONTENT",
)

_QWEN = Agent(
    "qwen",
    "Qwen Code",
    "npm install -g @qwen-code/qwen-code",
    (
        *_env((("OPENAI_BASE_URL", "{url}"), ("OPENAI_API_KEY", "{key}"), ("OPENAI_MODEL", "{model}"))),
        Setting("option", "auth-type", "openai"),
        Setting("option", "openai-base-url", "{url}"),
        Setting("option", "model", "{model}"),
        *_env(
            (("QWEN_MC_KEEP_RECENT", "1000000"),),
            marked("removing tool results from earlier messages changes everything after them"),
        ),
        *_env((("QWEN_CODE_MAX_OUTPUT_TOKENS", "{n_answer}"),), _OWN_SIZE),
        *_env((("QWEN_DISABLE_AUTO_TITLE", "1"),), _FEW_REQUESTS),
        *_env((("QWEN_TELEMETRY_ENABLED", "false"),), _NO_NEWS),
    ),
    without=("HTTP_PROXY", "HTTPS_PROXY"),  # it asks them for every address, whatever NO_PROXY says
)

_AIDER = Agent(
    "aider",
    "aider",
    "pip install aider-chat",
    (
        *_env((("AIDER_OPENAI_API_BASE", "{url}"), ("AIDER_OPENAI_API_KEY", "{key}"))),
        *_env((("AIDER_MODEL", "openai/{model}"),)),
        *_env((("AIDER_WEAK_MODEL", "openai/{model}"),), marked("one model for everything, with one cache")),
        *_env(
            (("AIDER_MAP_REFRESH", "files"),),
            marked(
                "the map of the repository precedes all messages: it stays the same as long as the files of the chat do"
            ),
        ),
        *_env(
            (("AIDER_MAX_CHAT_HISTORY_TOKENS", "{n_compact}"),),
            marked("a summarized history is read again: not before the context is nearly full"),
        ),
        *_env((("AIDER_TIMEOUT", "3600"),), _LONG_PROMPT),
        *_env((("AIDER_SHOW_MODEL_WARNINGS", "false"),), marked("aider does not know the price of a local model")),
        *_env(
            (
                ("AIDER_ANALYTICS", "false"),
                ("AIDER_CHECK_UPDATE", "false"),
                ("AIDER_SHOW_RELEASE_NOTES", "false"),
                ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
            ),
            _NO_NEWS,
        ),
    ),
)

AGENTS: Final[dict[str, Agent]] = {agent.name: agent for agent in (_CLAUDE, _CODEX, _OPENCODE, _QWEN, _AIDER)}
