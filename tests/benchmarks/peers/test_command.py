"""`kvdesk bench peers`: what is wrong on the command line is one sentence, and a table comes of a whole run."""

import json

import pytest

from kvdesk.__main__ import main
from tests.benchmarks.peers import rows, run
from tests.benchmarks.peers.server_app import running


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--only", "speed"], "There is no row speed. There are: turns, decode"),
        (["--rounds", "0"], "--rounds takes a number from 1 on"),
        (["--minutes", "0"], "--minutes takes a number above 0"),
        (["--busy", "7"], "invalid choice: 7"),
        (["--model", "/nowhere/none.gguf"], "none.gguf"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["bench", "peers", *arguments])
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.strip().count("\n") == 0


def test_a_short_run_compares_what_is_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "WARM_UP", 2)
    monkeypatch.setattr(rows, "IN_TURN", 2)
    monkeypatch.setattr(rows, "TURN_TOKENS", 2)
    with running() as server:
        url = server.url
        command = ["bench", "peers", "--only", "in-turn", "--rounds", "1", "--busy", "0", "--n-ctx", "1024", "--json"]
        assert main([*command, "--url", url, "--url", "http://127.0.0.1:9"]) == 0
    out, said = capsys.readouterr()
    result = json.loads(out)
    (row,) = result["rows"]
    name = url.removeprefix("http://")
    assert row["what"] == "first token, two chats in turn"
    assert row["kvdesk"]["values"][0] > 0
    assert row["peers"]["Llama"]["times_as_fast"] > 0
    assert row["peers"][name]["times_as_fast"] > 0
    assert row["peers"][name]["computed_tokens"] == [5]
    assert "Nothing answers at http://127.0.0.1:9/v1." in result["absent"].values()
    assert "minutes" in said
    assert "times as fast as Llama" in said, "a person sees the table too"
