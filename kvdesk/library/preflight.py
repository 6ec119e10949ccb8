"""Tries an unknown model in a process that may die: whatever the file does to llama.cpp costs nothing.

Owns the child's command line, its limits, its deadline, and the verdicts that are remembered. Knows nothing of the
engine: the child's work is `kvdesk.backends.local.preflight_child`, which says what works, as it goes on.
"""

import hashlib
import importlib.metadata
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from kvdesk import paths
from kvdesk.children.process import Child, ChildStopped, child_command, crash_name
from kvdesk.codec import CodecError, decode, encode, from_builtins
from kvdesk.errors import UserError
from kvdesk.library.estimate import estimate
from kvdesk.library.gguf_header import GgufHeader, read_header
from kvdesk.settings import ContextSettings
from kvdesk.translation import tr
from kvdesk.values import dataclass, replace
from kvdesk.whole_file import write_whole

TIME_LIMIT_S = 60.0
SECONDS_PER_GB = 10.0  # more time for larger files: a slow disk reads 100 MB/s
FIXED_BYTES = 6 << 30  # address space of Python, numpy's and llama.cpp's threads: reserved, hardly used
ENDS = 1 << 20  # bytes of both ends of the file that are hashed besides the header
MOST_VERDICTS = 500
_MOST_BYTES = 1 << 24  # of their file: 500 have some 100 KB
_FROM_OUTSIDE = "SIGKILL"
"""No model's doing: the system was out of memory, or somebody killed the trial."""
TRIAL = 2  # what a trial tries; a verdict of an earlier kind of trial is not believed
LONG_LINE = 200_000
"""Characters in one line of text that a trial gives the tokenizer."""
SHORT_LINE = 500
"""Characters in one line that every tokenizer takes."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the trial showed. `sentence` says what is wrong when it is not `ok`; `detail` is for the log.

    longest_line   characters in one line that the model's tokenizer is known to take
    """

    ok: bool
    sentence: str = ""
    detail: str = ""
    template_problem: str = ""  # the model works, its chat template does not
    remembered: bool = False  # from an earlier trial of this very file
    longest_line: int = LONG_LINE


@dataclass(frozen=True, slots=True)
class Answer:
    """What the child says after each part of the trial.

    in_long_lines  all else has been tried
    certain        another trial would say the same
    """

    ok: bool
    sentence: str = ""
    detail: str = ""
    template_problem: str = ""
    in_long_lines: bool = False
    certain: bool = True


def run_preflight(
    path: Path, settings: ContextSettings, *, again: bool = False, cancelled: Callable[[], bool] = lambda: False
) -> Verdict:
    """Load the model in a child process and try it there (`kvdesk.backends.local.preflight_child`), unless its
    verdict is remembered.

    Blocks for as long as the load takes, or until `cancelled` says so (asked a few times a second; the verdict is then
    not ok and not remembered). `again` ignores what is remembered. The embedded model is trusted.

    Raises ModelFileError for a file that is refused without a trial.
    """
    path = path.absolute()  # the child runs in another folder
    header = read_header(path)
    if path == paths.embedded_model():
        return Verdict(ok=True)
    cache = paths.verdicts_file()
    key = _fingerprint(header, settings)
    if not again and (verdict := _recall(cache, key)):
        return verdict
    verdict, certain = _try(header, settings, cancelled)
    if certain:
        _remember(cache, key, verdict)
    return verdict


def trial_command(path: Path, settings: ContextSettings, memory_bytes: int) -> list[str]:
    """The command line of the trial."""
    return child_command("--preflight", str(path), str(memory_bytes), settings.model_dump_json())


def small_settings(settings: ContextSettings) -> ContextSettings:
    """The types and switches of `settings` with as few cells as llama.cpp takes, and as many earlier states."""
    n_ubatch = max(32, settings.n_rs_seq + 2)
    return settings.model_copy(
        update={
            "n_ctx": 256 if settings.kv_unified else 512,
            "n_seq_max": min(2, settings.n_seq_max),
            "n_batch": n_ubatch,
            "n_ubatch": n_ubatch,
            "n_threads": 1,
            "n_threads_batch": 1,
        }
    )


# --- the trial ------------------------------------------------------------------------------------------------------


def _try(header: GgufHeader, settings: ContextSettings, cancelled: Callable[[], bool]) -> tuple[Verdict, bool]:
    """The verdict, and whether another trial would give the same one."""
    small = small_settings(settings)
    needed = estimate(header, small)
    file_bytes = sum(part.stat().st_size for part in header.split_paths)
    limit_s = TIME_LIMIT_S + SECONDS_PER_GB * file_bytes / 1e9
    # twice the weights: mapped from the file, and repacked for the processor where llama.cpp does that
    command = trial_command(header.path, small, 2 * file_bytes + needed.context + FIXED_BYTES)
    name, deadline = header.path.name, time.monotonic() + limit_s
    told: Answer | None = None
    try:
        with Child(command) as child:
            try:
                while True:
                    told = child.receive_value(deadline - time.monotonic(), cancelled, Answer)
            except ChildStopped as stopped:
                if stopped.reason != "ended":
                    how = (
                        tr("was cancelled")
                        if stopped.reason == "cancelled"
                        else tr("did not load within {limit_s:.0f} s in a trial").format(limit_s=limit_s)
                    )
                    return Verdict(False, f"{name} {how}.", stopped.detail), False
            code = child.wait() or 0
            verdict = _judge(name, code, told, child.last_words)
            crashed = crash_name(code) not in ("", _FROM_OUTSIDE)
            if crashed and not verdict.ok and needed.n_earlier:  # no room in its graph: llama-context.cpp:2396
                words = tr("It may have no room for {n} earlier states (n_rs_seq).").format(n=needed.n_earlier)
                verdict = replace(verdict, sentence=f"{verdict.sentence} {words}")
    except OSError as error:
        return Verdict(False, tr("The trial of the model could not be started."), repr(error)), False
    certain = crash_name(code) != _FROM_OUTSIDE and (told is None or told.certain)
    return verdict, certain and (verdict.ok or not crash_name(code))


def _judge(name: str, code: int, told: Answer | None, last_words: str) -> Verdict:
    """told: the last thing that the child said."""
    if told is not None:
        if code == 0 or not told.ok:
            return Verdict(told.ok, told.sentence, told.detail, told.template_problem)
        if told.in_long_lines:
            return Verdict(True, "", last_words, told.template_problem, longest_line=SHORT_LINE)
    if (how := crash_name(code)) == _FROM_OUTSIDE:
        sentence = tr(
            "The trial of {name} was killed ({how}), perhaps because memory ran out. Open it again to try once more."
        )
        return Verdict(False, sentence.format(name=name, how=how), last_words)
    if how:
        sentence = tr("{name} makes llama.cpp crash ({how}); it did so in a trial, so nothing is lost.")
        return Verdict(False, sentence.format(name=name, how=how), last_words)
    return Verdict(False, tr("{name} failed in a trial (exit code {code}).").format(name=name, code=code), last_words)


# --- what is remembered ---------------------------------------------------------------------------------------------


def _fingerprint(header: GgufHeader, settings: ContextSettings) -> str:
    """Of the files' sizes, times, headers and ends, the settings that decide, and the engine."""
    digest = hashlib.sha256()
    parts = [header.path.stat(), *(part.stat() for part in header.split_paths[1:])]
    facts = [(part.st_size, part.st_mtime_ns) for part in parts]
    switches = [settings.type_k, settings.type_v, settings.flash_attn, settings.kv_unified, settings.swa_full]
    if settings.n_rs_seq:  # without: as earlier versions have it
        switches.append(f"{settings.n_rs_seq} earlier states")
    digest.update(repr((TRIAL, facts, [str(switch) for switch in switches], _engine_version())).encode())
    with header.path.open("rb") as file:
        for _ in range(0, header.data_offset, ENDS):
            digest.update(file.read(ENDS))
        digest.update(file.read(ENDS))
        file.seek(max(0, header.file_size - ENDS))
        digest.update(file.read(ENDS))
    return digest.hexdigest()


def _engine_version() -> str:
    try:
        return importlib.metadata.version("llama-cpp-python")
    except importlib.metadata.PackageNotFoundError:  # a bundle without metadata: new bundle, new times
        return str(Path(sys.executable).stat().st_mtime_ns)


def _recall(cache: Path, key: str) -> Verdict | None:
    try:
        return replace(from_builtins(Verdict, _read(cache).get(key)), remembered=True)
    except CodecError:  # none, or one of another version
        return None


def _remember(cache: Path, key: str, verdict: Verdict) -> None:
    """Losing a verdict costs one more trial, so a folder that cannot be written is no error."""
    known = _read(cache)
    known.pop(key, None)
    known[key] = verdict
    newest = dict(list(known.items())[-MOST_VERDICTS:])
    with suppress(OSError, UserError):
        paths.data_dir()
        write_whole(cache, encode(newest, indent=1))


def _read(cache: Path) -> dict[str, Any]:
    try:
        return decode(dict[str, Any], paths.read_regular(cache, _MOST_BYTES))
    except (OSError, CodecError):
        return {}
