"""What a cache reused of the requests of a conversation, turn by turn, and what a test asks of it.

Pure: the counts come from `kvdesk.testing.engine`. A share is that of what could be reused: of the turn before, all
tokens; of a prompt, all but the last, which is read again in any case.
"""

import tomllib
from pathlib import Path
from typing import Final

from kvdesk.errors import UserError
from kvdesk.testing.stable import CacheMiss
from kvdesk.translation import tr
from kvdesk.values import dataclass

BUDGETS: Final = "kv-budget.toml"
"""The file of budgets, beside the configuration of pytest."""
USUAL_SHARE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Turn:
    """One request, in tokens.

    reusable  that many of its prompt a cache could have: 0 of the first turn
    at        the first that differs from the turn before, -1 if none does; held, now: the texts from there on
    """

    n_prompt: int
    n_reused: int
    reusable: int
    at: int = -1
    held: str = ""
    now: str = ""

    @property
    def n_read(self) -> int:
        return self.n_prompt - self.n_reused

    @property
    def share(self) -> float:
        """From 0 to 1; 1 if there was nothing to reuse."""
        return min(1.0, self.n_reused / self.reusable) if self.reusable else 1.0


@dataclass(frozen=True, slots=True)
class Budget:
    """least_share: of each turn but the first; most_read: tokens of all turns that are read, -1: any number."""

    least_share: float = 0.0
    most_read: int = -1


@dataclass(frozen=True, slots=True)
class Replay:
    """The turns in order. model: the name of its file; budgets: where `assert_budget` looks."""

    turns: tuple[Turn, ...]
    model: str
    budgets: Path

    @property
    def n_read(self) -> int:
        """Tokens of all turns that were read."""
        return sum(turn.n_read for turn in self.turns)

    def assert_reused(self, turn: int, at_least: float = USUAL_SHARE) -> None:
        """turn: its number, from 2. Raises CacheMiss; UserError if the number is of no such turn."""
        __tracebackhide__ = True  # pytest shows the line of the test
        if not 2 <= turn <= len(self.turns):
            sentence = tr("There is no turn {turn}: the first has nothing to reuse, and the last is {last}.")
            raise UserError(sentence.format(turn=turn, last=len(self.turns)))
        found = self.turns[turn - 1]
        if found.share < at_least:
            raise CacheMiss(self._sentences(turn, found, at_least))

    def assert_budget(self, name: str) -> None:
        """The budget of that name. Raises CacheMiss; UserError if the file or the budget cannot be read."""
        __tracebackhide__ = True
        budget = budget_of(self.budgets, name)
        for number in range(2, len(self.turns) + 1):
            self.assert_reused(number, budget.least_share)
        if 0 <= budget.most_read < self.n_read:
            sentence = tr("All turns read {n:,} tokens; the budget “{name}” has {most:,}.")
            raise CacheMiss(sentence.format(n=self.n_read, name=name, most=budget.most_read))

    def _sentences(self, number: int, turn: Turn, at_least: float) -> str:
        sentence = tr("Turn {turn} reused {share:.0%} of what it could ({n:,} of {all:,} tokens), not {least:.0%}.")
        lines = [
            sentence.format(turn=number, share=turn.share, n=turn.n_reused, all=turn.reusable, least=at_least),
            tr("It read {n:,} of its {all:,} tokens ({model}).").format(
                n=turn.n_read, all=turn.n_prompt, model=self.model
            ),
        ]
        if turn.at >= 0:
            lines += [
                tr("The first token that differs is number {at:,} of the prompt:").format(at=turn.at),
                tr("  turn {n}: {text}").format(n=number - 1, text=turn.held),
                tr("  turn {n}: {text}").format(n=number, text=turn.now),
            ]
        else:
            lines.append(tr("No token differs from the previous turn: this model's cache could not reuse them."))
        return "\n".join(lines)


def budget_of(file: Path, name: str) -> Budget:
    """Raises UserError if the file, or the budget in it, is missing or invalid."""
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(tr("There is no file {given}.").format(given=file)) from error
    except (OSError, ValueError) as error:
        raise UserError(tr("{file} cannot be read: {why}").format(file=file.name, why=error)) from error
    if name not in found:
        sentence = tr("{file} has no budget “{name}”; it has {names}.")
        raise UserError(sentence.format(file=file.name, name=name, names=", ".join(found) or "none"))
    table = found[name]
    known = table if isinstance(table, dict) and set(table) <= {"least_share", "most_read"} else {}
    share, most = known.get("least_share", 0.0), known.get("most_read", -1)
    if not known or not isinstance(share, int | float) or not 0 <= share <= 1 or type(most) is not int or most < -1:
        sentence = tr("{file}: the budget “{name}” has least_share (0 to 1), most_read (tokens), or both.")
        raise UserError(sentence.format(file=file.name, name=name))
    return Budget(float(share), most)
