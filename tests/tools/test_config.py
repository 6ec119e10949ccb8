"""Files in which other programs list servers."""

import json
from pathlib import Path

import pytest

from kvdesk.errors import UserError
from kvdesk.settings import ToolGrant, ToolServer
from kvdesk.tools import config
from kvdesk.tools.servers import bound_to, command_line, is_granted, words_of

CURSOR = """{
  // of Cursor, with comments and a comma too many, as VS Code has them
  "mcpServers": {
    "git": {"command": "uvx", "args": ["mcp-server-git", "--repository", "/a b"], "env": {"TOKEN": "secret//x"},},
    "far away!": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer 1"}}, /* the last */
    "neither": {"type": "stdio"}, "no object": 5,
  }
}"""


def test_a_list_is_read_and_its_keys_are_kept_apart() -> None:
    git, far = config.parsed(CURSOR, "mcp.json")
    assert git.server == ToolServer(
        name="git", command="uvx", args=("mcp-server-git", "--repository", "/a b"), env=("TOKEN",)
    )
    assert git.values == {"TOKEN": "secret//x"}
    assert command_line(git.server) == 'uvx mcp-server-git --repository "/a b"'
    assert (far.server.name, far.server.url, far.server.headers) == (
        "far-away", "https://example.org/mcp", ("Authorization",),
    )  # fmt: skip
    assert far.values == {"Authorization": "Bearer 1"}


def test_a_name_that_is_taken_becomes_another() -> None:
    [one] = config.parsed('{"servers": {"git": {"command": "git"}}}', "mcp.json", frozenset({"git", "git-2"}))
    assert one.server.name == "git-3"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("no", "mcp.json is not a JSON file."),
        ("[" * 100_000, "mcp.json is not a JSON file."),
        ("[]", "mcp.json lists no tool servers: it has no “mcpServers”."),
        ('{"mcpServers": []}', "mcp.json lists no tool servers: it has no “mcpServers”."),
        ('{"mcpServers": {"a": {"url": "file:///etc/passwd"}}}', "mcp.json lists no server that kvdesk can use."),
    ],
)
def test_what_is_wrong_is_said(text: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        config.parsed(text, "mcp.json")
    assert str(caught.value) == sentence


def test_a_file_that_does_not_exist_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        config.read(tmp_path / "mcp.json")


def test_what_was_allowed_is_bound_to_the_command() -> None:
    server = ToolServer(name="git", command="uvx", args=("mcp-server-git",))
    start = ToolGrant(bound=bound_to(server), what="start")
    tool = ToolGrant(bound=bound_to(server), what="tool", tool="log")
    assert is_granted((start,), server)
    assert not is_granted((start,), server, "log")
    assert is_granted((tool,), server, "log")
    assert not is_granted((tool,), server, "push")
    assert is_granted((ToolGrant(bound=bound_to(server), what="server"),), server, "push")
    for other in (
        server.model_copy(update={"args": ("mcp-server-git", "--force")}),
        server.model_copy(update={"env": ("LD_PRELOAD",)}),
        server.model_copy(update={"folder": "/tmp"}),
        ToolServer(name="git", url="https://example.org"),
    ):
        assert not is_granted((start, tool), other)
        assert not is_granted((start, tool), other, "log")


def test_texts_of_any_kind_are_read_as_json_would() -> None:
    value = {"mcpServers": {"a": {"command": 'say "// no comment", {}', "args": ["/* */,}", 5, None]}}}
    [one] = config.parsed(json.dumps(value), "mcp.json")
    assert one.server.command == 'say "// no comment", {}'
    assert one.server.args == ("/* */,}", "5", "None")


@pytest.mark.parametrize("text", ['"' + '\\"' * 300_000, "/*" * 300_000, '{"a": "' + "/*" * 300_000, "," * 300_000])
def test_no_file_takes_long(text: str) -> None:
    with pytest.raises(UserError, match="is not a JSON file"):
        config.parsed(text, "mcp.json")


@pytest.mark.parametrize(
    ("line", "platform", "words"),
    [
        ("uvx mcp-server-git --repository '/a b'", "linux", ["uvx", "mcp-server-git", "--repository", "/a b"]),
        (r"a\ b \\c # d", "linux", ["a b", r"\c", "#", "d"]),
        (r'"C:\Program Files\node.exe" -y a', "win32", [r"C:\Program Files\node.exe", "-y", "a"]),
        ('C:\\O\'Neil\\mcp.exe --name "my repo" ""', "win32", ["C:\\O'Neil\\mcp.exe", "--name", "my repo", ""]),
    ],
)
def test_a_command_is_read_as_it_is_typed(line: str, platform: str, words: list[str]) -> None:
    assert words_of(line, platform) == words


@pytest.mark.parametrize("platform", ["linux", "win32"])
def test_a_quotation_without_an_end_is_no_command(platform: str) -> None:
    with pytest.raises(ValueError, match="quotation"):
        words_of('uvx "a', platform)
