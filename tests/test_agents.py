"""The table of agents: what each run gets, and what it never gets."""

import json
import re
import shlex

import pytest

from kvdesk.agents import AGENTS, HIDDEN, Agent, Place, environment

KEY = "sk-kvdesk-secret~r1"
PLACE = Place("http://127.0.0.1:8123", KEY, "Qwen2.5 Coder & Co", 32768)
PERSON = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "NO_PROXY": "intern",
    "ANTHROPIC_API_KEY": "cloud",
    "ANTHROPIC_CUSTOM_HEADERS": "x: cloud",
    "OPENAI_API_KEY": "cloud",
    "OPENAI_BASE_URL": "https://cloud",
    "OPENROUTER_API_KEY": "cloud",
    "GEMINI_API_KEY": "cloud",
    "CLAUDE_CODE_USE_BEDROCK": "1",
    "CLAUDE_CODE_OAUTH_TOKEN": "cloud",
    "AWS_BEARER_TOKEN_BEDROCK": "cloud",
    "AIDER_OPENAI_API_BASE": "https://cloud",
    "GITHUB_TOKEN": "of git",
    "AWS_SECRET_ACCESS_KEY": "of a tool",
}
each = pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)


@each
def test_an_agent_gets_the_server_and_a_key_and_none_of_the_persons(agent: Agent) -> None:
    found, removed = environment(PERSON, agent, PLACE)
    said = " ".join([*found.values(), *agent.options(PLACE)])
    assert "cloud" not in said
    assert KEY in " ".join(found.values())
    assert PLACE.root in said
    assert "Qwen2.5-Coder-Co" in said, "a name that no shell takes apart"
    assert (found["HOME"], found["GITHUB_TOKEN"], found["AWS_SECRET_ACCESS_KEY"]) == ("/home/me", "of git", "of a tool")
    assert found["NO_PROXY"] == "intern,127.0.0.1"
    assert set(removed) == {name for name, value in PERSON.items() if "cloud" in value} | {"CLAUDE_CODE_USE_BEDROCK"}


@each
def test_the_key_is_on_no_command_line_and_is_not_shown(agent: Agent) -> None:
    assert KEY not in " ".join(agent.options(PLACE))
    shown = " ".join(setting for setting, _ in agent.shown(PLACE))
    assert KEY not in shown
    assert f"={HIDDEN}" in shown


@each
def test_what_an_agent_may_do_stays_as_it_is(agent: Agent) -> None:
    loosens = re.compile(r"yolo|yes|approv|permission|sandbox|danger|bypass|allow|trust|full.?auto|skip", re.IGNORECASE)
    assert not [s.name for s in agent.settings if loosens.search(f"{s.name}={s.value}")]


@each
def test_every_setting_beside_the_connection_has_a_reason_and_options_suit_cmd(agent: Agent) -> None:
    connects = {"root", "url", "key", "model"}
    silent = [s for s in agent.settings if not s.reason]
    assert all(set(re.findall(r"\{(\w+)\}", s.name + s.value)) <= connects for s in silent)
    assert not set('"%&|<>^!').intersection("".join(agent.options(PLACE)))


@each
def test_the_line_for_a_terminal_sets_the_same(agent: Agent) -> None:
    words = shlex.split(agent.line(PLACE))
    at = words.index(agent.name)
    assert dict(word.split("=", 1) for word in words[:at]) == agent.variables(PLACE)
    assert words[at + 1 :] == agent.options(PLACE)
    line = agent.line(PLACE, windows=True)
    assert all(f"$env:{name}='" in line for name in agent.variables(PLACE))
    assert line.count("; ") == len(agent.variables(PLACE))


def test_a_configuration_as_text_is_json_of_its_fields() -> None:
    found = json.loads(AGENTS["opencode"].variables(PLACE)["OPENCODE_CONFIG_CONTENT"])
    provider = found["provider"]["kvdesk"]
    assert provider["options"] == {"baseURL": "http://127.0.0.1:8123/v1", "apiKey": KEY, "timeout": False}
    assert provider["models"]["Qwen2.5-Coder-Co"]["limit"] == {"context": 32768, "output": 8192}
    assert found["model"] == found["small_model"] == "kvdesk/Qwen2.5-Coder-Co"
    assert (found["enabled_providers"], found["compaction"]) == (["kvdesk"], {"prune": False})


def test_qwen_code_gets_no_proxy_since_it_would_ask_it_for_the_server_too() -> None:
    person = {"https_proxy": "http://proxy:3128", "HTTP_PROXY": "http://proxy:3128"}
    found, removed = environment(person, AGENTS["qwen"], PLACE)
    assert removed == ["HTTP_PROXY", "https_proxy"]
    assert "proxy:3128" not in found.values()
    assert environment(person, AGENTS["claude"], PLACE)[0]["https_proxy"] == "http://proxy:3128"


def test_braces_of_a_key_are_no_names() -> None:
    place = Place("http://127.0.0.1:1", "{url}{nothing}", "m", 4096)
    assert AGENTS["claude"].variables(place)["ANTHROPIC_AUTH_TOKEN"] == "{url}{nothing}"
