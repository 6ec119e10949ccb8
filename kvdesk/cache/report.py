"""Writes the report of a mismatch between mirror and engine to a file, with the operations before it.

Owns the words of operations and the layout of the report. Must never know the engine: everything comes in as values.
"""

import json
from collections import deque
from collections.abc import Mapping

from kvdesk import values
from kvdesk.cache.batch import Batch
from kvdesk.cache.verify import Difference
from kvdesk.values import dataclass

HISTORY = 200  # operations
_MANY = 16  # tokens written out in full


@dataclass(frozen=True, slots=True)
class AuditReport:
    """One mismatch. `operations`: the last ones in words, oldest first."""

    operation: int
    difference: Difference
    operations: tuple[str, ...]
    versions: Mapping[str, str]
    model: Mapping[str, object]
    settings: Mapping[str, object]

    def to_json(self) -> str:
        """The report as one indented JSON object."""
        value = {
            "what": str(self.difference),
            "operation": self.operation,
            "difference": values.asdict(self.difference),
            "versions": dict(self.versions),
            "model": dict(self.model),
            "settings": dict(self.settings),
            "operations": list(self.operations),
        }
        return json.dumps(value, indent=2, default=str, ensure_ascii=False)


class History:
    """The last operations. Batches are kept as they are and put into words only when a report is made."""

    def __init__(self) -> None:
        self._entries: deque[tuple[int, str, Batch | None]] = deque(maxlen=HISTORY)

    def add(self, operation: int, words: str, batch: Batch | None = None) -> None:
        """Remember operation number `operation`; `words`: the call, or the result of `batch`."""
        self._entries.append((operation, words, batch))

    def words(self) -> tuple[str, ...]:
        """Every remembered operation, oldest first."""
        return tuple(f"{n}: {f'{batch_words(batch)} -> ' if batch else ''}{words}" for n, words, batch in self._entries)


def batch_words(batch: Batch) -> str:
    """`decode of 7: seq 0 pos 4 to 9; seq 1,2 pos 0` with tokens where they are few."""
    runs: list[tuple[tuple[int, ...], int, int]] = []
    for pos, seq_ids in zip(batch.pos, batch.seq_ids, strict=True):
        if runs and runs[-1][0] == tuple(seq_ids) and runs[-1][2] + 1 == pos:
            runs[-1] = (runs[-1][0], runs[-1][1], pos)
        else:
            runs.append((tuple(seq_ids), pos, pos))
    parts = [f"seq {','.join(map(str, s))} pos {low}{f' to {high}' if high > low else ''}" for s, low, high in runs]
    tokens = f" tokens {list(batch.tokens)}" if batch.n_tokens <= _MANY else ""
    return f"decode of {batch.n_tokens}: {'; '.join(parts)}{tokens}"
