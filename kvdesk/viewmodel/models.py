"""The table of models, without Qt: a row for each file, with texts to show and values to sort by."""

import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from kvdesk.folding import holds_all
from kvdesk.library.catalogue import Fit, ModelFacts, expected_tok_s, layer_seconds
from kvdesk.quantities import rate_text, size_text
from kvdesk.settings import CacheType, UsedModel
from kvdesk.translation import tr
from kvdesk.values import dataclass

MOST_REMEMBERED: Final = 200
"""Models that were opened: the oldest is forgotten then. Favourites stay."""


class Cell(NamedTuple):
    """text: as shown; value: to sort by; tip: in a sentence, "" for none."""

    text: str
    value: float | str
    tip: str = ""


class Machine(NamedTuple):
    """bytes_s: what decoding reads of the weights in a second; layer_s: what a layer costs beside that, measured with a
    model that ran here, else a usual value. available: bytes of memory.
    """

    bytes_s: float
    measured: bool
    available: int
    layer_s: float = 1e-4


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model. `cells` in the order of `columns`."""

    path: Path
    title: str
    favourite: bool
    fits: bool
    problem: str
    cells: tuple[Cell, ...]

    @property
    def can_open(self) -> bool:
        return not self.problem

    def matches(self, words: str) -> bool:
        """Whether every word is in one of its texts."""
        others = (cell.tip for cell in self.cells[:1])  # other names
        texts = " ".join((self.title, str(self.path), *others, *(cell.text for cell in self.cells)))
        return holds_all([texts], words.split())


def columns() -> tuple[tuple[str, str], ...]:
    """Captions and what they mean."""
    return (
        (tr("Model"), tr("The name of its file")),
        (tr("Architecture"), tr("As llama.cpp names it")),
        (tr("Parameters"), tr("Numbers in all its weights")),
        (tr("Type"), tr("Data type of most of its weights")),
        (tr("Size"), tr("Of all its files")),
        (tr("Trained for"), tr("Tokens of context it was trained for")),
        (tr("Fits here"), tr("The largest context for which there is free memory now, and the type of K and V")),
        (tr("Speed here"), tr("Tokens a second it writes: measured when it ran last, or expected (≈)")),
        (tr("Licence"), tr("According to the file")),
        (tr("Last used"), tr("When it was opened last")),
        (tr("Found in"), tr("The application that downloaded it, or its folder")),
    )


def row_of(facts: ModelFacts, fit: Fit | None, used: UsedModel | None, machine: Machine) -> ModelRow:
    """fit: None if the file cannot be opened; used: None before it was opened or chosen."""
    fits = fit is not None and fit.fits
    cells = (
        Cell(facts.title, facts.title.lower(), facts.problem or _names(facts)),
        Cell(facts.architecture or "–", facts.architecture),
        Cell(_count(facts.n_params), facts.n_params),
        Cell(facts.quantization or "–", facts.quantization),
        Cell(size_text(facts.found.size_bytes), facts.found.size_bytes),
        Cell(f"{facts.n_ctx_train:,}" if facts.n_ctx_train else "–", facts.n_ctx_train),
        _fit_cell(fit, machine),
        _speed_cell(facts, used, machine),
        Cell(facts.licence or "–", facts.licence),
        _used_cell(used),
        Cell(facts.found.application, facts.found.application),
    )
    favourite = used is not None and used.favourite
    return ModelRow(facts.found.path, facts.title, favourite, fits, facts.problem, cells)


def in_order(rows: Iterable[ModelRow], used: Iterable[UsedModel] = ()) -> tuple[ModelRow, ...]:
    """Favourites first, then what was used last (`used`: the last one first), then by name; what cannot be opened at
    the end.
    """
    places = {model.path: place for place, model in enumerate(used) if model.used_ms}

    def key(row: ModelRow) -> tuple[bool, bool, int, str]:
        return bool(row.problem), not row.favourite, places.get(str(row.path), sys.maxsize), row.title.lower()

    return tuple(sorted(rows, key=key))


def measured_layer_s(facts: Iterable[ModelFacts], used: Mapping[str, UsedModel], bytes_s: float) -> float | None:
    """What a layer cost in the model that ran last of those that were measured; None if none was. `used`: by path,
    the last used first.
    """
    there = {str(model.found.path): model for model in facts}
    measured = ((there[path], memory.tok_s) for path, memory in used.items() if memory.tok_s and path in there)
    return next((layer_seconds(model, bytes_s, tok_s) for model, tok_s in measured), None)


def remembered(models: Iterable[UsedModel], changed: UsedModel) -> tuple[UsedModel, ...]:
    """With one of them changed or added. The last used first, whatever the clock said; the oldest that is no favourite
    goes when there are too many.
    """
    before = list(models)
    at = next((i for i, model in enumerate(before) if model.path == changed.path), None)
    if at is None:
        ordered = [changed, *before] if changed.used_ms else [*before, changed]
    elif changed.used_ms != before[at].used_ms:
        ordered = [changed, *before[:at], *before[at + 1 :]]
    else:
        ordered = [*before[:at], changed, *before[at + 1 :]]
    kept = 0
    found = []
    for model in ordered:
        kept += not model.favourite
        if model.favourite or kept <= MOST_REMEMBERED:
            found.append(model)
    return tuple(found)


def summary(rows: Iterable[ModelRow], machine: Machine) -> str:
    """Of the whole page, one line."""
    known = list(rows)
    fitting = sum(row.fits for row in known)
    said = tr("Models that fit into the {free} of memory that are free now: {fitting} of {n}").format(
        n=len(known), fitting=fitting, free=size_text(machine.available)
    )
    if not machine.bytes_s:
        return said
    how = tr("measured with a model that ran here") if machine.measured else tr("from the memory's bandwidth alone")
    return said + tr("; decoding reads {speed} GB/s, {how}").format(speed=f"{machine.bytes_s / 1e9:.1f}", how=how)


def _names(facts: ModelFacts) -> str:
    """Other names that it has, and where it is."""
    others = dict.fromkeys((facts.name_in_file, facts.found.name))
    return "\n".join((*(name for name in others if name not in ("", facts.title)), str(facts.found.path)))


def _fit_cell(fit: Fit | None, machine: Machine) -> Cell:
    if fit is None:
        return Cell("–", -1)
    needed, free = size_text(fit.needed_bytes), size_text(machine.available)
    if not fit.fits:
        return Cell(tr("no"), 0, tr("It needs {needed}, and {free} are free.").format(needed=needed, free=free))
    kind = "" if fit.cache_type is CacheType.F16 else f", {fit.cache_type.value}"
    tip = tr("{n} tokens of context with K and V in {kind} take {needed}; {free} are free.").format(
        n=f"{fit.n_ctx:,}", kind=fit.cache_type.value, needed=needed, free=free
    )
    return Cell(f"{fit.n_ctx:,}{kind}", fit.n_ctx, tip)


def _speed_cell(facts: ModelFacts, used: UsedModel | None, machine: Machine) -> Cell:
    if used is not None and used.tok_s:
        return Cell(_speed(used.tok_s), used.tok_s, tr("Measured when it ran last."))
    expected = expected_tok_s(facts, machine.bytes_s, machine.layer_s)
    if not expected:
        return Cell("–", 0.0)
    tip = tr("Expected: a token reads {size} of weights, and this machine reads {speed} GB/s of them.").format(
        size=size_text(facts.bytes_a_token), speed=f"{machine.bytes_s / 1e9:.1f}"
    )
    return Cell(f"≈ {_speed(expected)}", expected, tip)


def _used_cell(used: UsedModel | None) -> Cell:
    if used is None or not used.used_ms:
        return Cell("–", 0)
    when = datetime.fromtimestamp(used.used_ms / 1000, UTC).astimezone()
    return Cell(f"{when:%Y-%m-%d}", used.used_ms, f"{when:%Y-%m-%d %H:%M}")


def _speed(tok_s: float) -> str:
    return tr("{n} tok/s").format(n=rate_text(tok_s))


def _count(n: int) -> str:
    for size, unit in ((10**9, "B"), (10**6, "M")):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n:,}" if n else "–"
