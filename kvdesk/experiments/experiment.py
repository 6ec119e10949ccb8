"""What an experiment declares: its question, its parameters, what it takes, how it measures, and what it answers.

One file each; `kvdesk.experiments` has the tuple of all.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from pydantic import ValidationError

from kvdesk.cache.geometry import ModelFacts
from kvdesk.errors import UserError
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.measured import Measured
from kvdesk.experiments.statistics import uncertain
from kvdesk.protocol.experiment import Parameter, Progress, Result, Sample, Values, series_title
from kvdesk.settings import ContextSettings
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass, replace

Measuring = Iterator[Progress | Sample]
"""What an experiment tells while it measures."""


class Work(NamedTuple):
    """How much is computed, to foresee the time: tokens read in batches, and tokens written one by one. fixed_s:
    seconds that it takes on every machine.
    """

    read: float
    written: float
    fixed_s: float = 0.0

    def seconds(self, read_s: float, written_s: float) -> float:
        """At these seconds for a token that is read, and for one that is written."""
        return self.fixed_s + self.read * read_s + self.written * written_s


@dataclass(frozen=True, slots=True)
class Experiment:
    """A question about the KV cache that a measurement answers.

    supposed   what the question comes from, in a sentence
    settings   of the largest context it makes at a time
    work       what it computes
    measure    does it: yields progress and samples; everything measured is in a sample
    answer     pure: the result from what was measured alone, so that other samples can lead to another verdict
    applies    "" or, in a sentence, why there is nothing to measure in such a memory
    takes_text it reads `Bench.text`, which may be a person's own; takes_journal: it takes the history of a journal, in
               place of one that it makes
    stages     what x 0, 1, … of its samples are called; () if they are numbers
    """

    id: str
    title: str
    question: str
    supposed: str
    parameters: tuple[Parameter, ...]
    settings: Callable[[Values], ContextSettings]
    work: Callable[[Values], Work]
    measure: Callable[[Bench], Measuring]
    answer: Callable[[Values, Measured], Result]
    applies: Callable[[ModelFacts], str] = lambda _facts: ""
    takes_text: bool = False
    takes_journal: bool = False
    stages: tuple[str, ...] = ()

    def context(self, values: Values) -> ContextSettings:
        """`settings`. Raises UserError if no context may be so large: each parameter is in its range, but not all
        together.
        """
        try:
            return self.settings(values)
        except ValidationError as error:
            sentence = tr("No context may be as large as these parameters need together: choose smaller ones.")
            raise UserError(sentence, str(error)) from error

    def conclude(self, values: Values, samples: Sequence[Sample]) -> Result:
        """The answer; after its remarks those on figures that were judged by a value inside their interval."""
        result = self.answer(values, Measured(samples))
        return replace(result, remarks=(*result.remarks, *uncertain(result.figures)))

    def run(self, bench: Bench) -> Iterator[Progress | Sample | Result]:
        """Measure, and conclude at the end: the last value is the result. Raises UserError, also for what is no number:
        logits of a model may be none, and every comparison with that is false.
        """
        samples: list[Sample] = []
        for told in self.measure(bench):
            if isinstance(told, Sample):
                if not math.isfinite(told.y):
                    raise UserError(
                        tr("There is no verdict: “{series}” was measured as {value}, which is no number.").format(
                            series=series_title(told.series), value=told.y
                        )
                    )
                samples.append(told)
            yield told
        yield self.conclude(bench.values, samples)


def needs_attention(facts: ModelFacts) -> str:
    """For `applies`: cells of keys and values are needed."""
    if facts.kind == "recurrent":
        return tr("This model is recurrent: it keeps one state for each sequence, and no keys and values to measure.")
    if facts.kind == "unknown":
        return tr("kvdesk does not know the rules of this model's memory ({reason}).").format(reason=facts.reason)
    return ""


def needs_plain_attention(otherwise: str) -> Callable[[ModelFacts], str]:
    """For `applies`: a cache without windows and recurrent states. otherwise: why there is nothing to measure."""

    def applies(facts: ModelFacts) -> str:
        return needs_attention(facts) or ("" if facts.kind == "attention" else tr(otherwise))

    return applies


def needs_no_state(otherwise: str) -> Callable[[ModelFacts], str]:
    """For `applies`: a part of a sequence can be removed or shared. otherwise: why there is nothing to measure."""

    def applies(facts: ModelFacts) -> str:
        return needs_attention(facts) or (tr(otherwise) if facts.has_state else "")

    return applies


needs_prefixes: Final = needs_no_state(
    marked("This model has a state for each sequence, of which no prefix can be shared.")
)
"""For `applies`: the first tokens of a sequence can be given to another."""
