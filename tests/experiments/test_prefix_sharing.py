"""Sharing a prefix: what is said follows from the measured values."""

from kvdesk.cache.geometry import ModelFacts
from kvdesk.experiments.questions.prefix_sharing import (
    BLOCKS,
    CELLS,
    EXPERIMENT,
    FIRST,
    READ,
    SHARED,
    TOKEN,
    TREE,
    WHOLE,
)
from kvdesk.protocol.experiment import Result, Sample, chosen


def said(*, shared_s: float, tree: float, unsteady: float = 0.0) -> Result:
    """Three chats and a branch: a first token takes a second when read whole, in each round longer by the share
    `unsteady`.
    """
    samples = [Sample(f"{READ}: {name}", 0, n) for name, n in ((TREE, tree), (BLOCKS, 120))]
    samples += [Sample(f"{CELLS}: {name}", 0, n) for name, n in ((TREE, tree), (BLOCKS, 128))]
    for number in range(2):
        for way, seconds, n in ((WHOLE, 1.0 + unsteady * number, 400), (SHARED, shared_s, 100)):
            for x, note in enumerate(("first", "chat", "chat", "branch")):
                own = 1.0 if note == "first" else seconds
                samples.append(Sample(f"{FIRST}: {way}", x, own, number, note))
                if number == 0:
                    samples.append(Sample(f"{TOKEN}: {way}", x, 7))
            samples += [Sample(f"{READ}: {way}", 0, n, number), Sample(f"{CELLS}: {way}", 0, n, number)]
    return EXPERIMENT.conclude(chosen(EXPERIMENT.parameters, {}, short=True), samples)


def test_sharing_saves_what_it_does_not_read() -> None:
    result = said(shared_s=0.125, tree=100)
    assert result.verdict.key == "sharing saves time; as many tokens as in SGLang's tree: yes"
    assert [figure.value for figure in result.figures] == [1, 8, 8]
    assert result.tables[0].rows[1][1:3] == ("100", "100")
    assert "same in 4 of 4 prompts" in result.remarks[0]


def test_it_saves_nothing_where_times_and_tokens_say_so() -> None:
    assert said(shared_s=1.0, tree=90).verdict.key == "sharing saves no time; as many tokens as in SGLang's tree: no"


def test_what_lies_about_its_limit_is_not_certain() -> None:
    assert not [remark for remark in said(shared_s=0.125, tree=100).remarks if remark.startswith("Not certain")]
    assert (
        said(shared_s=1.0, tree=100, unsteady=0.4)
        .remarks[-1]
        .startswith("Not certain: first token of a chat, read whole over shared, 1.2 ")
    )


def test_a_recurrent_state_has_no_prefix() -> None:
    assert EXPERIMENT.applies(ModelFacts("h", "hybrid")).startswith("This model has a state for each sequence")
    assert EXPERIMENT.applies(ModelFacts("m", "recurrent")).startswith("This model is recurrent")
    assert EXPERIMENT.applies(ModelFacts("g", "iswa", n_swa=16, swa_type="standard")) == ""
