"""Rebuilding the context: no call that llama.cpp refuses is timed, whatever its memory can remove."""

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.errors import ContextError
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.questions import rebuild
from kvdesk.experiments.raw_context import Answer, RawContext
from kvdesk.protocol.experiment import Sample, chosen
from tests.cache.models import write_model

VALUES = chosen(rebuild.PARAMETERS, {"text": 64, "others": 256, "tokens": 4, "rounds": 2}, short=True)


@pytest.mark.parametrize("kind", ["attention", "iswa", "hybrid"])
def test_every_call_is_taken(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    decode = RawContext.decode

    def told(self: RawContext, tokens: Sequence[int], pos: Sequence[int], seq_id: int = 0, n_logits: int = 1) -> Answer:
        answer = decode(self, tokens, pos, seq_id, n_logits)
        codes.append(answer.rc)
        return answer

    monkeypatch.setattr(RawContext, "decode", told)
    path = write_model(tmp_path / f"{kind}.gguf", kind)
    with closing(Bench(path, rebuild.EXPERIMENT.settings(VALUES), VALUES)) as bench:
        samples = [event for event in rebuild.EXPERIMENT.measure(bench) if isinstance(event, Sample)]
    assert set(codes) == {0}
    n_rounds = 1 + max(sample.round for sample in samples)
    assert len(samples) == 3 * len(rebuild.WAYS) * n_rounds


def test_a_refused_call_is_an_error(open_context: Callable[..., RawContext]) -> None:
    context = open_context()
    assert context.read([5, 6, 7], 0).rc == 0
    with pytest.raises(ContextError, match="could not read 2 tokens: "):
        context.read([8, 9], 100)  # a gap
