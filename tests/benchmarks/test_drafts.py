"""`python -m tests.benchmarks.drafts`: what is said of three texts together."""

from collections.abc import Sequence

from tests.benchmarks.drafts import SERVER, WITH, WITHOUT, Told, together

SIMPLE, MOD = f"{SERVER}, ngram-simple", f"{SERVER}, ngram-mod"


def told(without: float, simple: Sequence[float], mod: Sequence[float]) -> Told:
    """Two rounds, 20 tok/s with drafts."""
    return Told({WITH: [20.0, 20.0], WITHOUT: [without, without], SIMPLE: [*simple], MOD: [*mod]})


def test_ratios_of_the_texts_are_averaged_round_by_round_and_over_the_best_of_each() -> None:
    found = [told(10.0, [20.0, 20.0], [5.0, 5.0]), told(40.0, [10.0, 10.0], [20.0, 20.0])]
    said = [" ".join(line.split()) for line in together(found)]
    assert said == [
        "all without with over it 1.000 [1.000, 1.000]",
        "all server, ngram-simple with over it 1.414 [1.414, 1.414]",
        "all server, ngram-mod with over it 2.000 [2.000, 2.000]",
        "all server, best of each with over it 1.000 [1.000, 1.000]",
    ]


def test_only_rounds_that_all_texts_have_count() -> None:
    short = Told({WITH: [20.0], WITHOUT: [10.0]})
    (line,) = together([short, Told({WITH: [20.0, 20.0], WITHOUT: [10.0, 1.0]})])
    assert "2.000" in line
