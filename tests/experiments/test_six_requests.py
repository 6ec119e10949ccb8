"""What six requests say follows from the measured values: others lead to the opposite."""

from __future__ import annotations

from kvdesk.experiments import six_requests
from kvdesk.experiments.six_requests import EXPERIMENT, PROGRAMS, RECORD, RIGHT, YARDSTICK, Program
from kvdesk.protocol.experiment import Result, Sample, chosen

VALUES = chosen(EXPERIMENT.parameters, {}, short=True)
REFUSED = ("from 0, nothing removed", "another sequence removed, from 0")


def concluded(*growing: Program) -> Result:
    """Six requests of each program in two rounds; those of the growing ones take longer and longer."""
    samples = []
    for number in range(2):
        for program in (RIGHT, *PROGRAMS):
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


def test_the_context_has_room_for_the_greediest_program() -> None:
    whole = chosen(EXPERIMENT.parameters, {}, short=False)
    sent = sum(six_requests._sent(whole, request, record=True) for request in range(6))
    assert sent == 5265  # 15 steps: all of earlier requests, the prompt and what is written so far
    assert EXPERIMENT.settings(whole).n_ctx >= sent
