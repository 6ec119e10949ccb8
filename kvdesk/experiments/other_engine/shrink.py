"""The shortest sequence of operations that still shows a difference. Pure: it is asked whether a sequence does."""

from collections.abc import Callable, Sequence

from kvdesk.cache.batch import Batch
from kvdesk.experiments.benchmarks.random_operations import Operation
from kvdesk.values import replace

Fails = Callable[[Sequence[Operation]], bool]


def shrunk(operations: Sequence[Operation], fails: Fails) -> tuple[Operation, ...]:
    """As few of `operations` as `fails` is true of, with as few tokens in their batches."""
    left = _fewer(list(operations), fails)
    for i in reversed(range(len(left))):
        batch = left[i].batch
        while batch is not None and batch.n_tokens > 1:
            batch = next(
                (cut for cut in _cuts(batch) if fails([*left[:i], replace(left[i], batch=cut), *left[i + 1 :]])), None
            )
            if batch is not None:
                left[i] = replace(left[i], batch=batch)
    return tuple(_fewer(left, fails))


def _fewer(left: list[Operation], fails: Fails) -> list[Operation]:
    """Leave out halves, then quarters, at last one at a time, until each is needed."""
    size = max(1, len(left) // 2)
    while size:
        n_before, at = len(left), 0
        while at < len(left):
            fewer = left[:at] + left[at + size :]
            if fewer and fails(fewer):
                left = fewer
            else:
                at += size
        if size > 1 or len(left) == n_before:
            size //= 2
    return left


def _cuts(batch: Batch) -> list[Batch]:
    """Its first half, and all but its last token."""
    sizes = sorted({batch.n_tokens // 2, batch.n_tokens - 1})
    return [Batch(batch.tokens[:n], batch.pos[:n], batch.seq_ids[:n], batch.output[:n]) for n in sizes]
