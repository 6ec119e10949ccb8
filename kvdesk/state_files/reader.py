"""Reads saved KV caches in a child process with limits of memory and time (`child`): such files come from strangers.
Whatever a file does to its reader, it costs one sentence.
"""

from pathlib import Path

from kvdesk import paths
from kvdesk.children.process import Child, ChildStopped, child_command
from kvdesk.codec import encode
from kvdesk.errors import UserError
from kvdesk.printable import printable
from kvdesk.settings import ContextSettings
from kvdesk.state_files import limits
from kvdesk.state_files.child import Asked
from kvdesk.state_files.found import Answer
from kvdesk.translation import tr


def read_state_file(
    path: Path, other: Path | None = None, model: Path | None = None, settings: ContextSettings | None = None
) -> Answer:
    """What is in `path`, how it differs from `other`, and whether it can be restored into a context of `model` with
    these settings. Blocks for as long as that takes. Raises UserError with one sentence if it cannot be read.
    """
    name = printable(path.name)
    asked = Asked(
        str(path.absolute()),
        str(other.absolute()) if other else "",
        str(model.absolute()) if model else "",
        (settings or ContextSettings()).model_dump_json(),
    )
    size = sum(paths.size_of(one) for one in (path, other, model) if one is not None)
    command = child_command("--read-state", encode(asked).decode(), str(size))
    memory, seconds = limits.MEMORY + size, limits.TIME_S + limits.SECONDS_PER_GB * size / 1e9
    try:
        with Child(command, memory=memory, max_message_bytes=limits.MOST_ANSWER) as child:
            answer: Answer = child.receive_value(seconds, kind=Answer)
    except OSError as error:
        raise UserError(tr("{name} could not be read.").format(name=name), repr(error)) from error
    except ChildStopped as stopped:
        raise UserError(_sentence(stopped.reason, name, seconds), stopped.detail) from stopped
    if answer.sentence:
        raise UserError(f"{name}: {answer.sentence}", answer.detail)
    return answer


def _sentence(reason: str, name: str, seconds: float) -> str:
    sentences = {
        "time": tr("{name} took longer than {seconds:.0f} seconds to read."),
        "memory": tr("Reading {name} needs more memory than kvdesk allows."),
    }
    stopped = tr("{name} could not be read: the reader stopped. The file may be damaged.")
    return sentences.get(reason, stopped).format(name=name, seconds=seconds)
