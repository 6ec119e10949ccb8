"""Converting K and V: the first layer depends on the tokens alone, wherever the saved state has it."""

from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.experiments.bench import Bench
from kvdesk.experiments.questions import requantization
from kvdesk.protocol.experiment import chosen
from tests.cache.models import write_model

VALUES = chosen(requantization.PARAMETERS, {"text": 64, "judged": 16, "rounds": 1}, short=True)


@pytest.mark.parametrize("kind", ["attention", "iswa", "chunked", "hybrid"])
def test_the_first_layer_is_what_llama_cpp_quantizes_itself(kind: str, tmp_path: Path) -> None:
    """With windows a state has the other layers first, whose K and V depend on those of the layers before."""
    path = write_model(tmp_path / f"{kind}.gguf", kind)
    with closing(Bench(path, requantization.EXPERIMENT.context(VALUES), VALUES)) as bench:
        samples = list(requantization._first_layer(bench, bench.tokens(64)))
        with requantization._context(bench, requantization.TARGETS[0]) as context:
            context.read(bench.tokens(64), 0)
            assert [rows.size > 0 for rows in requantization._first_rows(bench, context)] == [True, True]
    assert [(sample.series, sample.y) for sample in samples] == [
        (f"{kind.value}: {requantization.OTHER}", 0) for kind in requantization.TARGETS
    ]
