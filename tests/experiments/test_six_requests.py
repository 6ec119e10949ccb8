"""What six requests say follows from the measured values: others lead to the opposite."""

from collections.abc import Mapping, Sequence

from kvdesk.experiments.questions import six_requests
from kvdesk.experiments.questions.six_requests import EXPERIMENT, PROGRAMS, RECORD, RIGHT, YARDSTICK, Program
from kvdesk.protocol.experiment import Result, Sample, chosen

VALUES = chosen(EXPERIMENT.parameters, {}, short=True)
REFUSED = ("from 0, nothing removed", "another sequence removed, from 0")


def concluded(*growing: Program, others: Mapping[tuple[Program, int], Sequence[float]] | None = None) -> Result:
    """Six requests of each program in two rounds; those of the growing ones take longer and longer.

    others: seconds of a program in a round that are others, of fewer requests where it was stopped
    """
    samples = []
    for number in range(2):
        for program in (RIGHT, *PROGRAMS):
            if (seconds_of := (others or {}).get((program, number))) is not None:
                samples += [Sample(program.name, k + 1, s, number) for k, s in enumerate(seconds_of)]
                continue
            refusal = "Y = X + 1" if program.name.endswith(REFUSED) else ""
            for request in range(1, 3 if refusal else 7):
                seconds = 0.1 * request if program in growing else 0.1
                note = refusal if request == 2 else ""
                samples.append(Sample(program.name, request, seconds, number, note))
        samples += [Sample(YARDSTICK, k, 0.1, number, p.name) for p in PROGRAMS for k in range(1, 7)]
    return EXPERIMENT.conclude(VALUES, samples)


def test_sending_the_record_again_is_found() -> None:
    result = concluded(RECORD)
    assert result.verdict.key == "the record sent again"
    row = next(row for row in result.tables[0].rows if row[0] == RECORD.name)
    assert row[5:] == ("+1.00", "1.00", "grows")
    assert sum("refused at request 2" in row[-1] for row in result.tables[0].rows) == 3
    assert any("Unexplained" in remark for remark in result.remarks)


def test_without_growth_nothing_is_found() -> None:
    result = concluded()
    assert result.verdict.key == "nothing grows"
    assert not any("Unexplained" in remark for remark in result.remarks)


def test_another_suspect_is_found() -> None:
    stacked = next(program for program in PROGRAMS if program.name.startswith("a fresh id"))
    assert concluded(RECORD, stacked).verdict.key == f"grows: {stacked.name}"


def row_of(result: Result, program: Program) -> tuple[str, ...]:
    return next(row for row in result.tables[0].rows if row[0] == program.name)


def test_a_round_in_which_a_program_was_stopped_does_not_count_beside_whole_ones() -> None:
    threads = next(program for program in PROGRAMS if program.threads == "too many")
    result = concluded(RECORD, others={(threads, 1): (0.1, 0.9)})
    row = row_of(result, threads)
    assert row[4] == "1", "of one round, without an interval"
    assert row[-1] == "does not grow (stopped after request 2 in 1 of 2 rounds)"
    (said,) = [remark for remark in result.remarks if remark.startswith("Stopped")]
    assert said.startswith(f"Stopped — {threads.name}: in 1 of 2 rounds, at the earliest after request 2, when it had")
    assert said.endswith("Only the other rounds count.")


def test_a_program_that_was_always_stopped_is_not_judged_by_what_came_last() -> None:
    threads = next(program for program in PROGRAMS if program.threads == "added")
    result = concluded(RECORD, others={(threads, number): (8.8, 0.1) for number in range(2)})
    assert row_of(result, threads)[3:] == ("–", "–", "–", "–", "not judged (stopped after request 2 in 2 of 2 rounds)")
    assert result.verdict.key == "the record sent again"
    assert result.verdict.sentence.endswith(f"Not judged, since they took too long and were stopped: {threads.name}.")
    assert not any(threads.name in figure.name for figure in result.figures)


def test_a_program_that_had_grown_until_it_was_stopped_grows() -> None:
    result = concluded(others={(RECORD, number): (0.1, 0.2, 0.3) for number in range(2)})
    assert result.verdict.key == "the record sent again"
    assert "(at request 3, where it was stopped)" in result.verdict.sentence
    assert row_of(result, RECORD)[-1] == "grows (stopped after request 3 in 2 of 2 rounds)"


def test_growth_about_the_limit_is_not_certain() -> None:
    seconds = [(0.1, 0.11, 0.12, 0.13, 0.14, last) for last in (0.15, 0.3)]
    result = concluded(others={(RECORD, number): each for number, each in enumerate(seconds)})
    (said,) = [remark for remark in result.remarks if remark.startswith("Not certain")]
    assert said.startswith(f"Not certain: last over first request: {RECORD.name}, 2.25 ")


def test_the_context_has_room_for_the_greediest_program() -> None:
    whole = chosen(EXPERIMENT.parameters, {}, short=False)
    sent = sum(six_requests._sent(whole, request, record=True) for request in range(6))
    assert sent == 5265  # 15 steps: all of earlier requests, the prompt and what is written so far
    assert EXPERIMENT.settings(whole).n_ctx >= sent
