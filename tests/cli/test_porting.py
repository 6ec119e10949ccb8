"""`kvdesk export` and `kvdesk import`: while no window has the chats, and one sentence otherwise."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from kvdesk import paths
from kvdesk.__main__ import main
from kvdesk.chat import Conversation
from kvdesk.message import ConversationId
from kvdesk.store import Store
from kvdesk.store import store as store_module
from tests.conversations.porting.samples import chatgpt_conversation, llama_session, written


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path / "home"))


def test_there_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "export").mkdir()
    source = written(tmp_path / "export" / "conversations.json", [chatgpt_conversation()])
    assert main(["import", str(source), "--preview"]) == 0
    assert "Chats:       1\n" in capsys.readouterr().out
    assert main(["import", str(source)]) == 0
    out = capsys.readouterr().out
    assert "ChatGPT (unverified" in out
    assert out.endswith("One chat was imported.\n")
    assert main(["import", str(source.parent)]) == 0
    assert "Nothing was imported: all of its chats are here already." in capsys.readouterr().out
    assert main(["import", str(written(tmp_path / "l.json", llama_session()))]) == 0
    for name in ("all.json", "all.html", "all.md"):
        assert main(["export", str(tmp_path / name)]) == 0
    assert main(["export", str(tmp_path / "one.json"), "--chat", "Tides"]) == 0
    capsys.readouterr()
    assert main(["export", "--list"]) == 0
    assert capsys.readouterr().out.count("Tides\n") == 2
    before = _stored()
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path / "other"))
    assert main(["import", str(tmp_path / "all.json")]) == 0
    assert "2 chats were imported." in capsys.readouterr().out
    assert _stored() == before
    assert main(["import", str(tmp_path / "all.json"), "--copies"]) == 0
    assert len(_stored()) == 4


def test_a_title_does_not_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with closing(Store(paths.database_file())) as store:
        store.put_conversation(Conversation(ConversationId("c"), "\x1b[2Jة\u200cی", 0))
    assert main(["export", "--list"]) == 0
    assert capsys.readouterr().out.endswith("  ␛[2Jة\u200cی\n")


def _stored() -> dict[str, object]:
    with closing(Store(paths.database_file())) as store:
        return {one.id: (one, store.all_messages(one.id)) for one in store.conversations()}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["export"], "kvdesk export: FILE is missing. `kvdesk export --help` shows the usage."),
        (["export", "x.json"], "There are no chats yet."),
        (["import", "none.json"], "none.json cannot be read: No such file or directory."),
    ],
)
def test_what_cannot_be_done_gets_a_sentence(
    arguments: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code: object = main(arguments)
    except SystemExit as ended:
        code = ended.code
    assert (code, capsys.readouterr().err) == (2, sentence + "\n")


def test_other_names_and_endings_get_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(written(tmp_path / "c.json", [chatgpt_conversation()]))]) == 0
    assert main(["export", str(tmp_path / "x.doc")]) == 2
    assert main(["export", str(tmp_path / "x.md"), "--chat", "none"]) == 2
    said = capsys.readouterr().err
    assert said == "x.doc must end in one of .json, .md, .html.\nNo chat has the id or title none.\n"


def test_a_window_has_the_chats_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "BUSY_MS", 1)
    source = written(tmp_path / "c.json", [chatgpt_conversation()])
    with closing(Store(paths.database_file())):
        for arguments in (["import", str(source)], ["export", str(tmp_path / "x.json")]):
            assert main(arguments) == 2
    sentence = "The chats are open in kvdesk's window: close it, or export and import there.\n"
    assert capsys.readouterr().err == sentence * 2
    assert json.loads(source.read_bytes())
    assert not (tmp_path / "x.json").exists()
