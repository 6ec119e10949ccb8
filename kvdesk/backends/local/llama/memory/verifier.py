"""How far the map of one context can be trusted, and the history for a report when it cannot.

Owns the verification state, the history of operations and the report of a mismatch. Must never call the engine.
"""

from collections.abc import Mapping

from kvdesk.cache.batch import Batch
from kvdesk.cache.report import AuditReport, History
from kvdesk.cache.snapshot import Verification, VerificationState
from kvdesk.cache.verify import Difference
from kvdesk.values import dataclass, replace

MAX_REBUILDS = 3
"""A map that was rebuilt from the engine this often follows wrong rules, and then stays marked."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The origin of a report."""

    versions: Mapping[str, str]
    model: Mapping[str, object]
    settings: Mapping[str, object]


class Verifier:
    """The verification of one context.

    doubt    what no comparison can prove here, "" for nothing: agreement is then "mirrored", never "verified"
    remark   what else a reader of "verified" should know
    """

    def __init__(self, subject: Subject, doubt: str = "") -> None:
        self._subject = subject
        self.doubt = doubt
        self.remark = ""
        self._history = History()
        self.n_rebuilt = 0
        self.report: AuditReport | None = None
        self.verification = Verification("mirrored", 0, doubt)

    @property
    def mismatch(self) -> bool:
        return self.verification.state == "mismatch"

    def note(self, operation: int, words: str, batch: Batch | None = None) -> None:
        """Remember an operation for the report of a mismatch."""
        self._history.add(operation, words, batch)

    def conclude(self, operation: int, found: Difference | None) -> None:
        """The result of a comparison with the engine. A mismatch stays until the map is rebuilt."""
        if self.mismatch:
            return
        if found is None:
            state: VerificationState = "mirrored" if self.doubt else "verified"
            detail, rebuilt_at = self.doubt or self.remark, self.verification.rebuilt_at
            self.verification = Verification(state, operation, detail, rebuilt_at)  # `replace` takes five times as long
            return
        self.verification = replace(self.verification, state="mismatch", operation=operation, detail=str(found))
        self.report = AuditReport(
            operation, found, self._history.words(), self._subject.versions, self._subject.model, self._subject.settings
        )

    def reject(self, reason: str) -> None:
        """The map is wrong from the start, for a reason that is not a comparison."""
        self.verification = replace(self.verification, state="mismatch", detail=reason)

    def unproven(self) -> None:
        """Something happened that was not compared with the engine."""
        if not self.mismatch:
            self.verification = replace(self.verification, state="mirrored", detail=self.doubt)

    def rebuilt(self, operation: int) -> None:
        """The map has been taken from the engine's own state; `conclude` must follow."""
        self.n_rebuilt += 1
        self.verification = Verification("mirrored", operation, self.doubt, rebuilt_at=operation)
