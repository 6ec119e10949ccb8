"""Rows, rounds and the table, on peers whose speed is made up: ratios, problems, limits of time."""

import itertools
import json
import threading
import time
from collections.abc import Generator

import pytest

from kvdesk.errors import UserError
from tests.benchmarks.peers import rows, run
from tests.benchmarks.peers.peer import Answer, PeerFailed, Piece, answer
from tests.benchmarks.peers.rows import ROWS, WORDS, Measured, Row, Texts
from tests.benchmarks.peers.server_app import WORDS as ANSWER
from tests.benchmarks.peers.table import Line, as_json, text


class MadeUp:
    """A peer that answers at once. `fails`: what is raised for texts that have this in them."""

    about, no_restart = "made up", ""

    def __init__(self, name: str, fails: str = "", *, gone: bool = False) -> None:
        self.name, self.fails, self.gone = name, fails, gone
        self.asked: list[tuple[str, str, int]] = []
        self.n_restarts = 0

    def ask(self, chat: str, text: str, n_tokens: int) -> Generator[Piece]:
        self.asked.append((chat, text, n_tokens))
        if self.fails and self.fails in text:
            raise PeerFailed(f"{self.name} failed.", gone=self.gone)
        for i in range(n_tokens):
            if n_tokens > 200:  # the story beside which a prompt is read
                time.sleep(0.001)
            yield Piece(ANSWER[i % 4], n_read=7)

    def forget(self, chat: str) -> None:
        pass

    def settle(self) -> None:
        pass

    def restart(self) -> None:
        self.n_restarts += 1

    def close(self) -> None:
        pass


class OneAtATime(MadeUp):
    """The next request waits for the end of the one before."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._one = threading.Lock()

    def ask(self, chat: str, text: str, n_tokens: int) -> Generator[Piece]:
        with self._one:
            time.sleep(0.02)  # until all know that the one before has ended
            yield from super().ask(chat, text, n_tokens)


class Slow(OneAtATime):
    """A token takes 10 ms."""

    def ask(self, chat: str, text: str, n_tokens: int) -> Generator[Piece]:
        for piece in super().ask(chat, text, n_tokens):
            time.sleep(0.01)
            yield piece


def plan(*only: str, rounds: int = 1, minutes: float = 1.0) -> run.Plan:
    return run.Plan.of(only, (0,), rounds, minutes)


def compared(plan: run.Plan, *peers: MadeUp, start: float | None = None) -> list[Line]:
    began = time.monotonic() if start is None else start
    return run.compare({p.name: p for p in peers}, plan, Texts(20.0, 0), lambda _line: None, began)


def test_every_row_measures_what_it_names() -> None:
    ours, other = MadeUp("kvdesk"), MadeUp("other")
    lines = compared(plan(), ours, other)
    assert [line.name for line in lines] == [name for row in ROWS for name in row.names]
    for line in lines:
        assert not line.problems
        assert line.median("kvdesk") > 0
        assert line.times_as_fast("other") is not None
    assert sorted(ours.asked) == sorted(other.asked)  # the very same chats
    assert ours.n_restarts == other.n_restarts == 1


def test_no_two_chats_begin_alike_and_prompts_have_their_length() -> None:
    ours = MadeUp("kvdesk")
    compared(plan("prefill", rounds=3), ours)
    openings = [text.split()[0] for _, text, _ in ours.asked]
    assert len(set(openings)) == len(openings) == 6
    n_words = len(WORDS.split())
    assert len(ours.asked[0][1].split()) == pytest.approx(n_words * 482 / 20, abs=2)
    assert len(ours.asked[1][1].split()) == pytest.approx(n_words * 2018 / 20, abs=2)


def test_a_server_has_no_text_of_the_run_before() -> None:
    """One that kept them had read 2,000 tokens in 77 ms."""
    numbers = {run.first_number() for _ in range(20)}
    assert len(numbers) > 1
    assert {len(str(number)) for number in numbers} == {6}  # of one length in tokens


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_another_peer_begins_a_row_in_each_round(monkeypatch: pytest.MonkeyPatch, n_rows: int) -> None:
    began: list[str] = []
    peers = [MadeUp("kvdesk"), MadeUp("a"), MadeUp("b")]

    def measure(peer: object, _texts: Texts) -> list[Measured]:
        began.append(peer.name)  # type: ignore[attr-defined]
        return [Measured("m", 1.0, "s")]

    monkeypatch.setattr(run, "ROWS", tuple(Row(str(i), "m", ("m",), measure) for i in range(n_rows)))
    compared(plan(rounds=3), *peers)
    for row in range(n_rows):
        assert sorted(began[3 * row :: 3 * n_rows]) == ["a", "b", "kvdesk"]


def line_of(
    unit: str,
    ours: list[float],
    theirs: list[float],
    read: tuple[int | None, int | None] = (7, 7),
    how: tuple[str, str] = ("", ""),
) -> Line:
    line = Line(0, "it")
    for name, values, n_read, told in (("kvdesk", ours, read[0], how[0]), ("other", theirs, read[1], how[1])):
        for number, value in enumerate(values):
            line.add(name, number, Measured("it", value, unit, n_read, told and f"{told} in round {number}"))
    return line


def test_times_and_speeds_become_the_same_ratio() -> None:
    ones, others = [1.0] * 5, [2.0, 3.0, 2.5, 2.5, 2.5]
    for line in (line_of("s", ones, others), line_of("tok/s", others, ones)):
        ratio = line.times_as_fast("other")
        assert ratio.value == pytest.approx(2.5)
        assert [ratio.low, ratio.high] == pytest.approx([2.0, 3.0])
        assert line.behind("other") == ""


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (
            (7, 7),
            "it computed 7 tokens of the prompt, other 7, so each token took longer, or what comes before and after",
        ),
        ((70, 7), "it computed 70 tokens of the prompt, other 7"),
        ((7, None), "it computed 7 tokens of the prompt; other does not tell how many it did"),
    ],
)
def test_where_kvdesk_is_behind_the_row_says_by_how_much_and_why(read: tuple[int, int | None], said: str) -> None:
    line = line_of("s", [2.0, 2.0], [1.0, 1.0], read)
    assert line.behind("other") == f"kvdesk is behind other by 50 %: {said}."
    assert line.behind("other") in "\n".join(text([line], {"kvdesk": "", "other": ""}))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (("wrote", "wrote"), ": kvdesk wrote in round 1; other wrote in round 1."),
        (("wrote", ""), ": kvdesk wrote in round 1."),
        (("", ""), "; nothing that was measured tells why."),
    ],
)
def test_a_row_without_a_prompt_says_how_its_middle_value_came(how: tuple[str, str], said: str) -> None:
    line = line_of("tok/s", [0.9, 1.0, 1.1], [1.8, 2.0, 2.2], (None, None), how)
    assert line.behind("other") == f"kvdesk is behind other by 50 %{said}"


def test_what_is_known_of_a_prompt_follows_its_tokens() -> None:
    said = line_of("s", [2.0, 2.0], [1.0, 1.0], (70, 7), ("walked", "")).behind("other")
    assert (
        said
        == "kvdesk is behind other by 50 %: it computed 70 tokens of the prompt, other 7; kvdesk walked in round 0."
    )


def test_a_prompt_beside_an_answer_says_what_became_of_the_other() -> None:
    prompt, *answers = compared(plan("beside"), MadeUp("kvdesk"), OneAtATime("other"))
    assert prompt.values["kvdesk"][0].how.endswith(" tok/s of the answer meanwhile")
    assert prompt.values["other"][0].how == "ended the answer before"
    for line in answers:
        assert line.values["kvdesk"][0].how.startswith("brought the prompt's first token after ")
        assert line.values["other"][0].how.endswith(" s, when the answer had ended")


def test_tokens_of_an_answer_are_counted_however_many_came_at_once() -> None:
    done = Answer(0.0, times=[1.0, 2.0, 3.0, 4.0], n_told=[1, 2, 2, 5])
    assert done.n_between(1.0, 3.0) == 4


def test_a_difference_within_the_interval_is_none() -> None:
    assert line_of("s", [2.0, 1.0, 1.0], [1.0, 1.0, 1.2]).behind("other") == ""


def test_only_rounds_that_both_have_count() -> None:
    line = line_of("s", [1.0, 5.0], [2.0])
    ratio = line.times_as_fast("other")
    assert (ratio.value, ratio.high) == (2.0, None), "of one round nothing else is known"


def test_what_fails_is_said_and_the_rest_goes_on() -> None:
    lines = compared(plan("turns", "prefill", "decode"), MadeUp("kvdesk"), MadeUp("other", "plank"))
    for line in lines:
        assert ("other" in line.problems) == ("tokens" in line.name)
    table = "\n".join(text(lines, {"kvdesk": "", "other": ""}))
    assert "–" in table
    assert "] other failed." in table


def test_a_peer_that_is_gone_is_not_asked_again() -> None:
    other = MadeUp("other", "lighthouse", gone=True)
    lines = compared(plan("turns", "decode", rounds=3), MadeUp("kvdesk"), other)
    assert len(other.asked) == 1
    assert all(line.problems["other"] == "other failed." for line in lines)


def test_nothing_is_begun_when_the_time_is_over() -> None:
    ours = MadeUp("kvdesk")
    lines = compared(plan("decode"), ours, start=time.monotonic() - 61)
    assert not ours.asked
    assert lines[0].problems == {"kvdesk": "Not measured: 1 minutes were over."}
    assert as_json(lines, {"kvdesk": "", "other": ""})[0]["peers"]["other"] == {
        "problem": "Not measured: 1 minutes were over."
    }


def test_what_was_measured_before_an_interruption_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    other = MadeUp("other")  # begins the second row
    monkeypatch.setattr(other, "settle", lambda: _interrupt() if len(other.asked) > 10 else None)
    turn, *_, story = compared(plan("turns", "decode"), MadeUp("kvdesk"), other)
    assert turn.times_as_fast("other") is not None
    assert not turn.problems
    assert story.problems == {"kvdesk": "Not measured: it was interrupted."}


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_the_result_is_json() -> None:
    lines = compared(plan("decode", rounds=2), MadeUp("kvdesk"), MadeUp("other"))
    (row,) = json.loads(json.dumps(as_json(lines, {"kvdesk": "", "other": ""})))
    assert (row["load"], row["what"], row["unit"]) == ("quiet", "one token after another", "tok/s")
    assert len(row["kvdesk"]["values"]) == len(row["peers"]["other"]["values"]) == 2
    assert row["peers"]["other"]["low"] <= row["peers"]["other"]["times_as_fast"] <= row["peers"]["other"]["high"]


def test_an_answer_that_takes_minutes_is_cut_off() -> None:
    done = answer(Slow("slow"), "a", "Hello", 1000, most_s=0.05)
    assert done.cut
    assert 1 < done.n_tokens < 100
    assert done.tok_s < 200


def test_a_prompt_that_waits_for_a_slow_answer_is_measured_when_that_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows, "STORY_S", 1.0)  # its first 16 tokens take a fifth of that
    first, _, gap = next(row for row in ROWS if row.id == "beside").measure(Slow("slow"), Texts(20.0, 0))
    assert first.how == "needed over 1 s for the answer before"
    assert gap.how.endswith("when the answer had been cut off")


def test_unknown_rows_and_loads_are_one_sentence() -> None:
    with pytest.raises(UserError, match=r"There is no row prefil\. There are: turns, decode, prefill"):
        run.Plan.of(["prefil"], (0,), 1, 1.0)
    with pytest.raises(UserError, match="Busy processes are 0 to 2"):
        run.Plan.of([], (3,), 1, 1.0)


def test_rows_have_names_of_their_own() -> None:
    names = list(itertools.chain.from_iterable(row.names for row in ROWS))
    assert len(set(names)) == len(names)
    assert len({row.id for row in ROWS}) == len(ROWS)
