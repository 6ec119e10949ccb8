"""Lines of logs in every wrapping, and logs cut anywhere."""

import json
import re
from datetime import UTC, datetime

import pytest

from kvdesk.engine_log.lines import LONGEST, LogLine, read_lines, seconds_of
from kvdesk.engine_log.sentences import SERVER
from kvdesk.values import replace

LINE = "slot update_slots: id  0 | task 3 | cached n_tokens = 7, memory_seq_rm [7, end)"


def only(text: str) -> LogLine:
    (line,) = read_lines([text.encode()])
    return line


@pytest.mark.parametrize(
    ("wrapped", "clock", "level"),
    [
        (LINE, "", 0),
        (f"> {LINE}", "", 0),
        (f"2.00.281.274 W {LINE}", "2.00.281.274", 2),
        (f"\x1b[34m0.13.678.519\x1b[0m \x1b[32mI \x1b[0m{LINE}", "0.13.678.519", 3),
        (f"May 23 01:43:26 box start.sh[500563]: 47.06.433.273 D {LINE}\r", "47.06.433.273", 5),
        (f"Sep 11 00:03:06   ollama[]: {LINE}", "", 0),
        (f"llama-server-1  | {LINE}", "", 0),
        (f"[53409] 5.21.791.267 I {LINE}", "5.21.791.267", 3),
        (f"2026-06-03 11:02:46 [DEBUG] {LINE}", "2026-06-03 11:02:46", 0),
        (f"[2025-07-19 20:33:33][DEBUG] {LINE}", "2025-07-19 20:33:33", 0),
        (f"2026-06-03T11:02:46.123+02:00 {LINE}", "2026-06-03T11:02:46", 0),
        (json.dumps({"type": "log", "time": 1500000, "level": "warn", "msg": LINE + "\n"}), "1.500 s", 2),
    ],
)
def test_what_wraps_a_line_is_taken_off(wrapped: str, clock: str, level: int) -> None:
    assert replace(only(wrapped), source="") == LogLine(1, LINE, clock, level)


@pytest.mark.parametrize(
    ("clock", "seconds"),
    [
        ("2.00.281.274", 120.281274),
        ("1.500 s", 1.5),
        ("2026-06-03 11:02:46", datetime(2026, 6, 3, 11, 2, 46).astimezone().timestamp()),
        ("2026-06-03T11:02:46Z", datetime(2026, 6, 3, 11, 2, 46, tzinfo=UTC).timestamp()),
        *((clock, 0.0) for clock in ("", "1 s s", "nan s", "1e300 s", "9999-12-31", "0001-01-01", "2026/06/03 - 1")),
    ],
)
def test_the_time_of_a_line_in_seconds(clock: str, seconds: float) -> None:
    assert seconds_of(clock) == pytest.approx(seconds)


def test_several_lines_of_one_message_are_lines_and_a_dump_is_one() -> None:
    lines = [{"type": "log", "msg": text} for text in ("a\nb\n", "\n..01 *\n\n")] + [{"type": "other", "x": "y"}]
    found = [line.text for line in read_lines(["\n".join(map(json.dumps, lines)).encode()])]
    assert found == ["a", "b", "", "\n..01 *\n", json.dumps(lines[2])]


def test_pieces_may_be_cut_anywhere() -> None:
    log = "é one\nzwei ß\n\n三".encode()
    whole = list(read_lines([log]))
    assert [line.text for line in whole] == ["é one", "zwei ß", "", "三"]
    assert list(read_lines(bytes([byte]) for byte in log)) == whole


def test_logs_of_a_windows_shell_are_utf_16() -> None:
    assert [line.text for line in read_lines(["\ufeffa\r\nb".encode("utf-16-le")])] == ["a", "b"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-8"])
def test_a_log_that_was_cut_has_no_mark_of_its_encoding(encoding: str) -> None:
    log = "slot a: one\r\nslot b: two ß\r\n".encode(encoding)
    for cut in ([log], (bytes([byte]) for byte in log)):
        assert [line.text for line in read_lines(cut)] == ["slot a: one", "slot b: two ß"]
    assert [line.text for line in read_lines([log[1:]])][-1] == "slot b: two ß" or "utf-16" in encoding
    marked = "\ufeffa\r\nb".encode(encoding)
    assert [line.text for line in read_lines(bytes([byte]) for byte in marked)] == ["a", "b"]


def test_another_file_begins_anew_whatever_its_encoding() -> None:
    files = [b"one", b"", "\ufefftwo\r\nthree".encode("utf-16-le"), b"", b"", b"four\n", b""]
    assert [line.text for line in read_lines(files)] == ["one", "two", "three", "four"]


def test_what_fills_a_file_that_was_cut_while_it_was_written_is_left_out() -> None:
    assert [line.text for line in read_lines([b"\0" * 300_000, b"\0\0slot a: x\n", b"y\0"])] == ["slot a: x", "y"]


def test_a_line_without_an_end_stays_bounded() -> None:
    piece = b"x" * 1_000_000
    (line,) = read_lines(piece for _ in range(12))
    assert LONGEST <= len(line.text) <= LONGEST + 1_000_000


def test_bytes_that_are_no_text_raise_nothing() -> None:
    noise = bytes(range(256)) * 40 + b"\n{\n{}\n[1]\n" + b"[" * 100_000 + b"]"
    assert len(list(read_lines([noise]))) > 40


@pytest.mark.parametrize("time", [10**400, -1, float("inf"), True, "x"])
def test_a_time_that_is_none_is_left_out(time: object) -> None:
    assert only(json.dumps({"type": "log", "time": time, "msg": LINE})).clock in ("", "0.000 s")


def test_lines_that_say_nothing_come_as_one_and_those_that_do_alone() -> None:
    """Only debug lines with the server's own head do; each line of the log is in one of the messages."""
    idle = ["que    start_loop: update slots", "res          send: sending result for task id = 3"]
    said = [f"0.01.000.000 D {text}" for text in [*idle, "srv  operator(): cancel task, id_task = 4", *idle]]
    said += [f"0.01.000.000 D slot f: id  0 | task 3 | {text}" for text in ("n_gen = 1", "n_gen = 2", "new: ... a")]
    said += [f"0.01.000.000 I {idle[0]}", f"0.01.000.000 I {idle[1]}", "0.01.000.000 D find_slot: x", said[0]]
    found = list(read_lines(["\n".join(said).encode()]))
    assert [line.number for line in found] == [1, 3, 4, 6, 8, 9, 10, 11, 12]
    assert [line.text for line in found[1:2]] == ["srv  operator(): cancel task, id_task = 4"]
    assert found[0].text.count("\n") == found[2].text.count("\n") == found[3].text.count("\n") == 1
    assert {line.level for line in found} == {3, 5}


def test_no_sentence_is_taken_for_nothing() -> None:
    for _, _, sentence in SERVER:
        text = re.sub(r"\{\w+:?\}", "7", re.sub(r"<([^|>]*)[^>]*>", r"\1", sentence))
        line = f"0.01.000.000 D slot f: id  0 | task 3 | {re.sub(r'[][~]', '', text)}\n"
        assert len(list(read_lines([2 * line.encode()]))) == 2, sentence


def test_json_that_is_nested_deeply_is_a_line_too() -> None:
    """JSON may be read a few levels deeper than it can be written."""
    for depth in range(850, 1000):
        deep = "[" * depth + "]" * depth
        for name in ("level", "time", "msg", "log", "container_name"):
            assert list(read_lines([f'{{"type": "log", "msg": "x", "{name}": {deep}}}'.encode()]))
