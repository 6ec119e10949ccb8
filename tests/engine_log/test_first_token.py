"""The first token that differs, asked from a server that runs: by its slots and its tokenizer."""

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from kvdesk.engine_log import first_token
from kvdesk.engine_log.findings import Cause, Finding
from kvdesk.engine_log.first_token import FirstTokens
from kvdesk.engine_log.lines import read_lines
from kvdesk.engine_log.live import LiveLog
from kvdesk.engine_log.record import Request


class Server:
    """llama-server's three answers. A token is a word; `slot`: what /slots shows; `asked`: paths, in order; `nonsense`:
    what it says in place of all.
    """

    def __init__(self) -> None:
        self.slot: dict[str, Any] = {"id": 0, "id_task": 0, "prompt": "", "generated": ""}
        self.asked: list[str] = []
        self.nonsense = ""
        outer, words = self, list[str]()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer([outer.slot])

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path == "/apply-template":
                    self._answer({"prompt": "".join(f"{one['role']}: {one['content']} " for one in body["messages"])})
                    return
                pieces = re.findall(r"\S+\s*", ("<s> " if body["add_special"] else "") + body["content"])
                words.extend(word for word in pieces if word not in words)
                self._answer({"tokens": [{"id": words.index(word), "piece": word} for word in pieces]})

            def _answer(self, value: object) -> None:
                outer.asked.append(self.path)
                data = (outer.nonsense or json.dumps(value)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"


@contextmanager
def serving() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.http.shutdown()
    thread.join()
    made.http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def finding(cause: Cause) -> Finding:
    return Finding(cause, "a sentence")


def ended(server: Server, *prompts: tuple[str, str], shown: int = 0, url: str = "") -> list[str]:
    """Requests of one slot with their answers, asked about one after another. `shown`: tasks that /slots is ahead."""
    said: list[str] = []
    asking = FirstTokens(said.append)
    for task, (prompt, answer) in enumerate(prompts):
        server.slot = {"id": 0, "id_task": task + shown, "prompt": prompt, "generated": answer}
        n = len(server.asked)
        asking.ended(Request(0, task, 1), finding(Cause.DIVERGED), url or server.url)
        asking.close()
        assert len(server.asked) > n
    return said


def test_a_miss_names_token_and_texts(server: Server) -> None:
    (line,) = ended(server, ("It is Monday and cold", " indeed"), ("It is Tuesday and cold", " yes"))
    assert "/slots and /tokenize: 2." in line
    assert "'Monday and cold indeed'" in line
    assert "'Tuesday and cold'" in line


def test_a_conversation_that_goes_on_in_another_slot_is_found(server: Server) -> None:
    said: list[str] = []
    asking = FirstTokens(said.append)
    text = "<|im_start|>system\nIt is {}. You keep a lighthouse, its lamp and its horn.<|im_end|>\n<|im_start|>user\nHi"
    prompts = (text.format("14:03"), "What is the price of a ton of tea?", text.format("14:05"))
    for number, prompt in enumerate(prompts):
        server.slot = {"id": number, "id_task": number, "prompt": prompt, "generated": ""}
        request = Request(number, number, 1, how="age", n_prompt=9, reused=0, read=9)
        asking.ended(request, finding(Cause.NEW), server.url)
        asking.close()
    (line,) = said
    assert line.startswith("        Message 1 changed. Usual cause: the system prompt contains the date or the time. ")
    assert "from another slot, by /slots and /tokenize: 3. That slot has" in line


def test_slots_of_another_server_are_others(server: Server) -> None:
    said: list[str] = []
    asking = FirstTokens(said.append)
    with serving() as other:
        for one, day in ((server, "Monday"), (other, "Tuesday")):
            one.slot = {"id": 0, "id_task": 0, "prompt": f"It is {day}", "generated": ""}
            asking.ended(Request(0, 0, 1, how="age"), finding(Cause.DIVERGED), one.url)
            asking.close()
            assert "/slots" in one.asked
    assert said == []


def test_the_oldest_slot_is_compared_with_itself_too(server: Server) -> None:
    said: list[str] = []
    asking = FirstTokens(said.append)
    text = "<|im_start|>system\nIt is {}. You keep a lighthouse, its lamp and its horn.<|im_end|>\n<|im_start|>user\nHi"
    for task, time in enumerate(("14:03", "14:05")):
        server.slot = {"id": 0, "id_task": task, "prompt": text.format(time), "generated": ""}
        asking.ended(Request(0, task, 1, how="age", n_prompt=9, reused=3), finding(Cause.DIVERGED), server.url)
        asking.close()
    (line,) = said
    assert line.startswith("        First token that differs, by /slots and /tokenize: 3. The slot has")


def test_a_server_that_hides_its_prompts_renders_those_of_the_log(server: Server) -> None:
    said: list[str] = []
    asking = FirstTokens(said.append)
    server.slot = {"id": 0, "id_task": 0}
    for task, day in enumerate(("Monday", "Tuesday")):
        body = json.dumps({"messages": [{"role": "user", "content": f"It is {day} and cold"}]})
        asking.ended(Request(0, task, 1, body=body), finding(Cause.DIVERGED), server.url)
    asking.close()
    (line,) = said
    assert "/apply-template and /tokenize: 4." in line
    assert "'Monday and cold '" in line
    assert "'Tuesday and cold '" in line


def test_texts_of_different_origins_are_not_compared(server: Server) -> None:
    said: list[str] = []
    asking = FirstTokens(said.append)
    server.slot = {"id": 0, "id_task": 0, "prompt": "It is Monday", "generated": ""}
    body = json.dumps({"messages": [{"role": "user", "content": "It is Tuesday"}]})
    for task in range(2):  # /slots shows the first of them alone
        asking.ended(Request(0, task, 1, body=body), finding(Cause.DIVERGED), server.url)
    asking.close()
    assert said == []
    assert "/apply-template" in server.asked


def test_what_goes_on_or_is_of_another_request_says_nothing(server: Server) -> None:
    assert ended(server, ("a b", " c"), ("a b c d", "")) == []
    assert ended(server, ("a b", ""), ("x y", ""), shown=1) == []
    assert "/tokenize" not in server.asked


@pytest.mark.parametrize(
    "url",
    [
        *("", "http://192.0.2.1:8080", "http://example.com", "http://[::1", "http://[::1]:99999", "http://127.0.0.1:x"),
        *("unix:///tmp/a", "http://", "//", "http://\x00", "\ud800", "http://127.0.0.1.example.com"),
    ],
)
def test_no_other_computer_is_asked(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", lambda _self: pytest.fail("it would ask"))
    FirstTokens(print).ended(Request(0, 1, 1), finding(Cause.DIVERGED), url)


def test_a_server_of_all_addresses_is_asked_at_one_of_this_computer(server: Server) -> None:
    (line,) = ended(server, ("It is Monday", ""), ("It is Tuesday", ""), url=server.url.replace("127.0.0.1", "0.0.0.0"))
    assert "/slots and /tokenize: 2." in line


def test_a_server_that_has_ended_or_shows_nothing_costs_nothing(server: Server) -> None:
    said: list[str] = []
    asking = FirstTokens(said.append)
    server.slot = {"id": 0}
    asking.ended(Request(0, 1, 1), finding(Cause.DIVERGED), server.url)
    asking.ended(Request(0, 2, 1), finding(Cause.DIVERGED), "http://127.0.0.1:9")
    asking.close()
    assert said == []


@pytest.mark.parametrize("nonsense", ["[" * 100_000, "[]", "{}", '["a"]', '[{"id": 0, "id_task": [], "prompt": 1}]'])
def test_an_answer_of_any_kind_ends_no_thread(nonsense: str, server: Server) -> None:
    server.nonsense = nonsense
    asking = FirstTokens(lambda _text: None)
    for task in range(2):
        asking.ended(Request(0, task, 1), finding(Cause.DIVERGED), server.url)
    asking.close()
    assert server.asked == ["/slots", "/slots"]


def test_a_server_that_hangs_is_waited_for_once_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_token, "_WAIT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as hangs:
        asking = FirstTokens(lambda _text: None)
        for task in range(16):
            url = f"http://127.0.0.1:{hangs.getsockname()[1]}"
            asking.ended(Request(0, task, 1), finding(Cause.DIVERGED), url)
        asking.close()
        hangs.setblocking(False)
        n = 0
        with suppress(BlockingIOError):
            while True:
                hangs.accept()[0].close()
                n += 1
        assert 0 < n < 16


def test_a_log_that_is_followed_tells_where_its_server_is(server: Server) -> None:
    said: list[str] = []
    live = LiveLog(said.append, with_cells=False, asks=lambda: True)
    lines = [f"srv    llama_server: listening on {server.url}"]
    for task, same in ((0, 0), (1, 2)):
        at = f"slot update_slots: id  0 | task {task} |"
        lines += [
            f"slot launch_slot_: id  0 | task {task} | processing task, is_child = 0",
            f"{at} new prompt, n_ctx_slot = 4096, n_keep = 0, task.n_tokens = 400",
            f"{at} n_past = {same}, slot.prompt.tokens.size() = 400, seq_id = 0, pos_min = 0, n_swa = 0",
            f"{at} cached n_tokens = {same}, memory_seq_rm [{same}, end)",
            f"slot print_timing: id  0 | task {task} | prompt eval time =  900.00 ms /  {400 - same} tokens",
            f"slot      release: id  0 | task {task} | stop processing: n_tokens = 400, truncated = 0",
        ]
    words = ["Monday", "Tuesday"]
    n = 0
    for line in read_lines(f"{line}\n".encode() for line in lines):
        if "processing task" in line.text:
            while len(server.asked) < n:
                threading.Event().wait(0.01)
            server.slot = {"id": 0, "id_task": n, "prompt": f"It is {words[n]} now", "generated": ""}
            n += 1
        live.feed(line)
    live.close()
    assert any("/slots and /tokenize: 2." in text for text in said), said
