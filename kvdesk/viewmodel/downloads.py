"""What can be downloaded and what is on its way, as texts, without Qt."""

from collections.abc import Iterable
from typing import Final

from kvdesk.library.download_queue import Download, State
from kvdesk.library.hub import RemoteModel, Repo, quantization_of
from kvdesk.library.recommended import Recommended
from kvdesk.quantities import rate_text, size_text
from kvdesk.translation import tr
from kvdesk.values import dataclass
from kvdesk.viewmodel.cells.readout import duration
from kvdesk.viewmodel.models import Cell, Machine

USUAL_LAYERS: Final = 28
"""Of a model whose header is not here yet: those of 1 to 8 B have 16 to 36."""
BESIDE_WEIGHTS: Final = 512 << 20
"""Bytes for a context and buffers that "fits" counts beside the file, before its header can be read."""
READING_TOK_S: Final = 8.0
"""Tokens a second at which text comes as fast as most people read it."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A model file that can be downloaded. model: None if the hub is to be asked for it first. chinese: whether it
    is known to speak Chinese well.
    """

    repo: str
    file: str
    title: str
    size_bytes: int
    remark: str
    model: RemoteModel | None = None
    licence: str = ""
    chinese: bool = False

    def fits(self, machine: Machine) -> bool:
        """Whether file and a context have room in the memory that is free now."""
        return self.size_bytes + BESIDE_WEIGHTS <= machine.available

    def tok_s(self, machine: Machine) -> float:
        """Tokens a second that it should write; 0.0 if the machine was not measured."""
        if not machine.bytes_s or not self.size_bytes:
            return 0.0
        return 1 / (self.size_bytes / machine.bytes_s + USUAL_LAYERS * machine.layer_s)


def offers_of(models: tuple[RemoteModel, ...]) -> tuple[Offer, ...]:
    """Of a repository."""
    return tuple(Offer(m.repo, m.files[0].name, m.title, m.size_bytes, _parts(m), m) for m in models)


def recommended_offers(models: tuple[Recommended, ...]) -> tuple[Offer, ...]:
    """The list that kvdesk brings along."""
    return tuple(
        Offer(
            m.repo,
            m.file,
            m.file.removesuffix(".gguf"),
            m.size_mb * 10**6,
            f"{m.good_for} · {m.licence}",
            licence=m.licence,
            chinese=m.chinese,
        )
        for m in models
    )


def best_offer(offers: Iterable[Offer], machine: Machine, *, chinese: bool = False) -> Offer | None:
    """The largest that fits and writes as fast as one reads (`READING_TOK_S`), else the fastest that fits. None if
    none fits. `chinese`: only those that speak it.
    """
    fitting = [offer for offer in offers if offer.fits(machine) and (offer.chinese or not chinese)]
    fluent = [offer for offer in fitting if offer.tok_s(machine) >= READING_TOK_S]
    if fluent:
        return max(fluent, key=lambda offer: offer.size_bytes)
    return min(fitting, key=lambda offer: offer.size_bytes, default=None)


def offer_facts(offer: Offer, machine: Machine) -> str:
    """Size, licence and speed in one line."""
    tok_s = offer.tok_s(machine)
    speed = tr("{speed} expected here").format(speed=_speed(tok_s)) if tok_s else ""
    return "  ·  ".join(part for part in (size_text(offer.size_bytes, 2), offer.licence, speed) if part)


def columns() -> tuple[tuple[str, str], ...]:
    """Captions and what they mean."""
    return (
        (tr("Model"), tr("Repository, and the files in it")),
        (tr("Type"), tr("Quantization, from the file name")),
        (tr("Size"), tr("Of all files of the model")),
        (tr("Fits here"), tr("Whether the file and 0.5 GB for a context fit into the memory that is free now")),
        (tr("Speed here"), tr("Tokens a second that it should write, if a token reads the whole file")),
        (tr("About"), tr("What it is good for, and its licence")),
    )


def cells_of(offer: Offer, machine: Machine | None) -> tuple[Cell, ...]:
    """In the order of `columns`. machine: None before it was measured."""
    size = offer.size_bytes
    fits, speed = Cell("–", 0), Cell("–", 0.0)
    if machine is not None and size:
        has_room = offer.fits(machine)
        fits = Cell(tr("yes") if has_room else tr("no"), int(has_room))
        if tok_s := offer.tok_s(machine):
            speed = Cell(_speed(tok_s), tok_s)
    return (
        Cell(offer.title, offer.title.lower(), f"{offer.repo}/{offer.file}"),
        Cell(quantization_of(offer.file) or "–", ""),
        Cell(size_text(size, 2), size),
        fits,
        speed,
        Cell(offer.remark, offer.remark),
    )


def repo_remark(repo: Repo) -> str:
    """Licence, downloads, and whether terms are to be accepted."""
    parts = [repo.licence, tr("{n} downloads a month").format(n=f"{repo.n_downloads:,}")]
    if repo.gated:
        parts.append(tr("terms to accept, token needed"))
    return " · ".join(part for part in parts if part)


def progress_text(download: Download) -> str:
    """Of a line in the list of downloads."""
    done, total = size_text(download.done_bytes, 2), size_text(download.total_bytes, 2)
    amount = tr("{done} of {total}").format(done=done, total=total)
    match download.state:
        case State.WAITING:
            said = tr("waiting · {amount}").format(amount=amount)
        case State.PAUSED:
            said = tr("paused · {amount}").format(amount=amount)
        case State.FAILED:
            return download.remark
        case State.DONE:
            return tr("downloaded · {total}").format(total=total)
        case State.RUNNING:
            said = amount
            if download.bytes_s:
                said += f" · {download.bytes_s / 1e6:.1f} MB/s"
            if download.left_s is not None:
                said += " · " + tr("{time} left").format(time=duration(download.left_s))
    return f"{said} · {download.remark}" if download.remark else said


def _speed(tok_s: float) -> str:
    return f"≈ {rate_text(tok_s)} tok/s"


def _parts(model: RemoteModel) -> str:
    return tr("{n} files").format(n=len(model.files)) if len(model.files) > 1 else ""
