"""Chats with servers, good and bad: text, numbers, and one sentence for each thing that goes wrong."""

import threading
from collections.abc import Iterator

import pytest

from kvdesk.backends.base import Emit
from kvdesk.backends.openai import answer as answers
from kvdesk.backends.openai import client
from kvdesk.backends.openai.backend import OpenAIBackend
from kvdesk.backends.openai.requests import PARAMETERS, body_of
from kvdesk.host.host import Host
from kvdesk.message import Message, new_message_id
from kvdesk.protocol.cache import AuditCache
from kvdesk.protocol.chat import CloseConversation, ContextUse, LoadModel, ModelLoaded, PrefillProgress, TurnStarted
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import Command, CommandFailed
from kvdesk.protocol.model import Endpoint
from kvdesk.settings import ContextSettings, Sampling
from kvdesk.values import replace
from tests.backends.heard import Heard, ask
from tests.backends.openai.scripted_server import DONE, ScriptedServer, chunk, event


class Connected(Heard):
    """A host with a connection."""

    def __init__(self) -> None:
        self.key = ""
        super().__init__(self._make)

    def _make(self, emit: Emit) -> OpenAIBackend:
        self.backend = OpenAIBackend(emit, lambda _url: self.key)
        return self.backend

    def connect(self, server: ScriptedServer, model: str = "", name: str = "box") -> ModelLoaded:
        self.send(LoadModel(Endpoint(server.url, model, name), ContextSettings()))
        self.wait(lambda: self.of(ModelLoaded) or self.of(CommandFailed))
        return self.of(ModelLoaded)[-1]

    def refusal(self, command: Command) -> str:
        """The sentence with which it fails."""
        self.send(command)
        self.wait(lambda: self.of(CommandFailed))
        return self.of(CommandFailed)[0].sentence


@pytest.fixture
def heard() -> Iterator[Connected]:
    heard = Connected()
    yield heard
    heard.close()


def test_an_answer_streams_with_its_numbers(heard: Connected, server: ScriptedServer) -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 20}}
    timings = {"prompt_per_second": 500.0, "predicted_per_second": 40.0}
    server.says(
        chunk(), chunk("On "), chunk("cliffs"), chunk(".", "stop"),
        event({"choices": [], "usage": usage, "timings": timings}), DONE,
    )  # fmt: skip
    loaded = heard.connect(server)
    assert loaded.model.name == "tiny on box"
    command, ended = heard.answered()
    assert heard.text(command) == "On cliffs."
    assert (ended.state, ended.note, ended.finish) == ("complete", "", "end")
    stats = ended.stats
    assert (stats.prompt_tokens, stats.reused_tokens, stats.prefilled_tokens, stats.generated_tokens) == (30, 20, 10, 3)
    assert (stats.prefill_tok_s, stats.decode_tok_s) == (500.0, 40.0)
    assert stats.ttft_ms > 0
    assert stats.why == "20 of 30 tokens were in the server's cache."
    assert stats.time_why == f"First token after {stats.ttft_ms / 1e3:.2f} s: 10 tokens read at 500 tok/s."
    assert [e.answer for e in heard.of(TurnStarted)] == [command.answer]
    (body,) = server.asked
    assert body["messages"] == [{"role": "user", "content": "Where do puffins live?"}]
    assert (body["model"], body["stream"], body["max_tokens"]) == ("tiny", True, 50)
    assert "top_k" not in body, "what OpenAI's protocol has not is not sent to a server that may refuse it"


def test_what_an_answer_takes_of_the_context_is_told_with_its_name(heard: Connected, server: ScriptedServer) -> None:
    """Several answers to one question may be written: only that of the shown one counts."""
    server.answers["/v1/models"] = {"data": [{"id": "tiny", "owned_by": "vllm", "max_model_len": 4096}]}
    usage = {"prompt_tokens": 30, "completion_tokens": 3}
    server.says(chunk("On cliffs.", "stop"), event({"choices": [], "usage": usage}), DONE)
    heard.connect(server)
    command = ask()
    heard.send(command)
    heard.wait(lambda: heard.of(ContextUse))
    assert heard.of(ContextUse) == [ContextUse(command.conversation, 33, 33, 4096, last=command.answer)]


def test_a_key_is_sent_and_a_wrong_one_is_said(heard: Connected, server: ScriptedServer) -> None:
    server.answers["/v1/models"] = lambda _: (401, {"Content-Type": "application/json"}, iter([b'{"error": "no"}']))
    heard.key = "sk-wrong"
    load = LoadModel(Endpoint(server.url, "", "box"), ContextSettings())
    assert heard.refusal(load) == "box: The server refuses the key (401)."
    assert server.requests[0][1]["Authorization"] == "Bearer sk-wrong"


def test_a_keyring_that_hangs_does_not_keep_it_from_closing(server: ScriptedServer) -> None:
    over, asked = threading.Event(), threading.Event()

    def hangs(_url: str) -> str:
        asked.set()
        over.wait(30)
        return ""

    host = Host(lambda emit: OpenAIBackend(emit, hangs))
    thread = threading.Thread(target=host.run)
    thread.start()
    host.submit(LoadModel(Endpoint(server.url, "", "box"), ContextSettings()))
    assert asked.wait(timeout=10)
    host.shut_down()
    thread.join(timeout=5)
    assert not thread.is_alive()
    over.set()


def test_a_dead_server_is_said_and_the_one_before_stays(heard: Connected, server: ScriptedServer) -> None:
    server.says(chunk("yes", "stop"), DONE)
    heard.connect(server)
    load = LoadModel(Endpoint("http://127.0.0.1:9", "", "gone"), ContextSettings())
    assert heard.refusal(load) == "gone: The server cannot be reached."
    assert heard.answered()[1].state == "complete"


def test_a_model_that_is_not_there_is_said(heard: Connected, server: ScriptedServer) -> None:
    load = LoadModel(Endpoint(server.url, "huge", "box"), ContextSettings())
    assert heard.refusal(load) == "box: The server has no model huge; it has tiny."


BAD: list[tuple[str, tuple[bytes | None, ...], dict[str, str | int], str, str]] = [
    ("a stream that breaks", (chunk("On "),), {}, "On ", "The connection broke in the middle of the answer."),
    ("no JSON", (chunk("On "), event(b"{oops")), {}, "On ", "The server sent an invalid answer."),
    ("wrong types", (event({"choices": "all"}),), {}, "", "The server sent an invalid answer."),
    ("a number for a text", (event({"choices": [{"delta": {"content": 5}}]}),), {}, "", "an invalid answer."),
    ("a huge line", (chunk("On "), b"data: " + b"x" * 5_000_000), {}, "On ", "an invalid answer."),
    ("an error in its middle", (chunk("On "), event({"error": {"message": "no room"}})), {}, "On ", "no room"),
    ("a page", (b"<html>hello</html>",), {"kind": "text/html"}, "", "The server sent an invalid answer."),
    ("429", (b'{"error": {"message": "Slow down."}}',), {"status": 429, "Retry_After": "7"}, "",
     "The server accepts no more requests at the moment (429). It asks to wait for 7 seconds. Slow down."),
    ("401", (b"",), {"status": 401}, "", "The server needs a key (401)."),
    ("400", (b'{"error": {"message": "top_k is unknown"}}',), {"status": 400}, "",
     "The server refuses the request (400). top_k is unknown"),
    ("500", (b"\xff\xfe",), {"status": 500}, "", "The server has failed (500)."),
    ("nothing", (), {}, "", "The connection broke in the middle of the answer."),
]  # fmt: skip


@pytest.mark.parametrize(("what", "pieces", "how", "text", "said"), BAD, ids=[row[0] for row in BAD])
def test_what_goes_wrong_is_one_sentence_and_the_text_stays(
    heard: Connected, server: ScriptedServer, what: str, pieces: tuple[bytes], how: dict[str, str], text: str, said: str
) -> None:
    assert what
    server.says(*pieces, **how)  # type: ignore[arg-type]
    heard.connect(server)
    command, ended = heard.answered()
    assert heard.text(command) == text
    assert said in ended.note
    assert ended.state == ("interrupted" if text else "failed")
    server.says(chunk("fine", "stop"), DONE)  # the connection goes on
    assert heard.answered()[1].state == "complete"


def test_a_server_that_is_silent_is_given_up(
    heard: Connected, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "SILENT_S", 0.2)
    server.says(chunk("On "), None)
    heard.connect(server)
    _, ended = heard.answered()
    assert (ended.state, ended.note) == ("interrupted", "The server has said nothing for 0.2 seconds.")


def test_stop_frees_the_connection_at_once_and_keeps_the_text(heard: Connected, server: ScriptedServer) -> None:
    server.says(chunk("On "), None)
    heard.connect(server)
    command, at_once = ask(), ask()
    heard.send(command)
    heard.wait(lambda: heard.text(command))
    heard.host.stop(command.answer)
    ended = heard.ended(command)
    assert (ended.state, ended.note, ended.stats.generated_tokens) == ("stopped", "", 1)
    assert server.gone.wait(timeout=5), "the server hears of it"
    heard.send(at_once, CloseConversation(at_once.conversation))
    assert heard.ended(at_once).state == "stopped"


def test_closing_ends_what_runs(server: ScriptedServer) -> None:
    heard = Connected()
    server.says(chunk("On "), None)
    heard.connect(server)
    command = ask()
    heard.send(command)
    heard.wait(lambda: heard.text(command))
    heard.close()
    assert (heard.ended(command).state, heard.ended(command).note) == ("interrupted", "kvdesk was closed.")


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ((" and the shore.",), " and the shore."),
        (("By the", " sea, and", " far."), ", and far."),
        (("By foot.",), "By foot."),
        (("By the",), "By the"),
    ],
)
def test_an_answer_is_continued_and_not_told_twice(
    heard: Connected, server: ScriptedServer, more: tuple[str, ...], text: str
) -> None:
    """Servers that know no continuing begin anew: what they repeat is left out."""
    server.says(*map(chunk, more), chunk("", "stop"), DONE)
    heard.connect(server)
    assert Feature.CONTINUE in heard.backend.features
    command = ask()
    before = Message(command.answer, command.conversation, None, "assistant", "By the sea")
    command = replace(command, continued=before)
    assert heard.answered(command)[1].state == "complete"
    assert heard.text(command) == text
    assert server.asked[0]["messages"][-1] == {"role": "assistant", "content": "By the sea"}


def test_reasoning_in_a_field_of_its_own_is_marked_and_not_sent_back(heard: Connected, server: ScriptedServer) -> None:
    thought = event({"choices": [{"delta": {"reasoning_content": "Birds…"}}]})
    server.says(thought, chunk("On cliffs.", "stop"), DONE)
    heard.connect(server)
    command, _ = heard.answered()
    said = heard.text(command)
    assert said == "<think>\nBirds…\n</think>\n\nOn cliffs."
    answer = Message(new_message_id(), command.conversation, None, "assistant", said)
    body = body_of(replace(command, messages=(*command.messages, answer)), "tiny", "other")
    assert body["messages"][-1] == {"role": "assistant", "content": "On cliffs."}


def test_a_content_that_is_a_list_of_parts_is_text_and_reasoning(heard: Connected, server: ScriptedServer) -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Birds…"}]}
    parts = event({"choices": [{"delta": {"content": [thought, {"type": "text", "text": "On "}]}}]})
    server.says(parts, chunk("cliffs.", "stop"), DONE)
    heard.connect(server)
    command, ended = heard.answered()
    assert ended.state == "complete"
    assert heard.text(command) == "<think>\nBirds…\n</think>\n\nOn cliffs."


def test_progress_of_a_prompt_and_the_end_at_a_limit(heard: Connected, server: ScriptedServer) -> None:
    progress = {"total": 100, "cache": 20, "processed": 60, "time_ms": 400}
    server.says(
        event({"choices": [{"delta": {"role": "assistant", "content": None}}], "prompt_progress": progress}),
        chunk("On", "length"), DONE,
    )  # fmt: skip
    heard.connect(server)
    _, ended = heard.answered()
    assert (ended.state, ended.finish, ended.note) == ("complete", "limit", "Ended at the limit of 1 tokens.")
    (told,) = heard.of(PrefillProgress)
    assert (told.done, told.total, told.tok_s) == (60, 100, 100.0)


def test_a_server_that_does_not_stream_is_understood(heard: Connected, server: ScriptedServer) -> None:
    whole = b'{"choices": [{"message": {"content": "On cliffs."}, "finish_reason": "stop"}]}'
    server.says(whole, kind="application/json")
    heard.connect(server)
    command, ended = heard.answered()
    assert ended.state == "complete"
    assert heard.text(command) == "On cliffs."


def test_text_that_never_ends_is_ended(
    heard: Connected, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MOST_TEXT", 50)
    server.says(*(chunk("x" * 20) for _ in range(5)))
    heard.connect(server)
    command, ended = heard.answered()
    assert (ended.state, ended.note) == ("interrupted", "The answer is longer than kvdesk keeps.")
    assert len(heard.text(command)) == 40


def test_what_only_a_local_engine_does_is_said(heard: Connected, server: ScriptedServer) -> None:
    heard.connect(server)
    assert heard.refusal(AuditCache()) == "The cache of this engine cannot be audited."


def test_without_a_server_an_answer_fails_with_a_sentence(heard: Connected) -> None:
    _, ended = heard.answered()
    assert (ended.state, ended.note) == ("failed", "No server is connected.")


@pytest.mark.parametrize("kind", PARAMETERS)
def test_each_kind_gets_the_parameters_that_it_knows(kind: str) -> None:
    sampling = Sampling(top_k=7, stop=("END",), seed=5, grammar='root ::= "a"', json_schema='{"type": "object"}')
    body = body_of(ask(sampling=sampling), "m", kind)  # type: ignore[arg-type]
    assert (body["seed"], body["temperature"], body["stop"]) == (5, 0.8, ["END"])
    assert ("grammar" in body) == (kind in ("kvdesk", "llama-server"))
    assert ("top_k" in body) == (kind != "other")
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert "seed" not in body_of(ask(), "m", kind)  # type: ignore[arg-type]
