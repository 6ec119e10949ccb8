"""The child process of an experiment: it loads the model itself, and a crash affects nothing else.

Gets a request as its argument and sends events.
"""

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from kvdesk import __version__, paths
from kvdesk.cache.journal.file import load_journal
from kvdesk.children.entry import Parent
from kvdesk.codec import decode
from kvdesk.errors import KvdeskError, UserError, explained
from kvdesk.experiments import experiment_by_id
from kvdesk.experiments.sample_text import SAMPLE_TEXT
from kvdesk.library.estimate import check_fits
from kvdesk.library.gguf_header import read_header
from kvdesk.protocol.experiment import ExperimentEvent, Failed, Finished, Progress, Request, Result, Sample, Started
from kvdesk.translation import tr

MOST_TEXT = 1 << 20
"""Bytes read from a text file, far more than any experiment needs."""


def child_main(parent: Parent, argv: Sequence[str]) -> int:
    """`argv`: one request as JSON. Returns 0 when the experiment came to its result, 2 when not."""
    try:
        request = decode(Request, argv[0])
    except (IndexError, ValueError) as error:
        sys.stderr.write(f"usage: kvdesk --experiment REQUEST ({error})\n")
        return 2

    say: Callable[[ExperimentEvent], None] = parent.send_value
    event: ExperimentEvent | None = None
    try:
        for event in run(request, say):
            say(event)
    except KvdeskError as error:
        event = Failed(str(error), error.detail)
        say(event)
    except MemoryError:
        event = Failed(tr("The experiment needs more memory than is available."))
        say(event)
    return 0 if isinstance(event, Finished) else 2


def run(request: Request, say: Callable[[ExperimentEvent], None]) -> Iterator[ExperimentEvent]:
    """The events of a whole run; the last is the result, those of the cells go to `say`. Raises KvdeskError."""
    from kvdesk.experiments.bench import ONE_THREAD, Bench

    experiment = experiment_by_id(request.experiment_id)
    path = Path(request.model)
    header = read_header(path)
    settings = experiment.context(request.values).model_copy(update=ONE_THREAD)
    text = read_text(Path(request.text_file)) if request.text_file else SAMPLE_TEXT
    journal = load_journal(Path(request.journal_file))[1] if request.journal_file else None
    with closing(
        Bench(path, settings, request.values, seed=request.seed, text=text, journal=journal, tell_cells=say)
    ) as bench:
        needed = check_fits(header, settings)
        yield Progress(0, 1, tr("loading {name}").format(name=path.name))
        if why_not := experiment.applies(bench.model.facts):
            raise UserError(why_not)
        read, written = bench.speed()
        seconds = round(experiment.work(request.values).seconds(read, written), 1)
        yield Started(machine(), needed.total, seconds, read, written)
        start = time.perf_counter()
        for told in experiment.run(bench):
            match told:
                case Result():
                    yield Finished(told, bench.load(), round(time.perf_counter() - start, 2))
                case Progress() | Sample():
                    yield told


def read_text(path: Path) -> str:
    """The user's own text: the first `MOST_TEXT` bytes of a file. Raises UserError."""
    with explained(tr("{path} cannot be read: {why}."), path=path), paths.open_regular(path) as file:
        return file.read(MOST_TEXT).decode("utf-8", "replace")


def machine() -> dict[str, str]:
    """Facts about the machine that the numbers depend on."""
    import psutil

    from kvdesk.backends.local.llama.binding import engine_version

    version = engine_version()
    return {
        "processor": _processor(),
        "cores": f"{psutil.cpu_count(logical=False)} ({os.cpu_count()} logical)",
        "memory": f"{psutil.virtual_memory().total / 1e9:.1f} GB",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "kvdesk": __version__,
        "llama-cpp-python": version.binding,
        "llama.cpp": version.commit,
        "built for": " ".join(version.system.split()),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Model"))]
    return named[0] if named else platform.processor() or platform.machine()
