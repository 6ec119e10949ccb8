"""Options that several commands share, and the settings they make."""

import argparse
import os
from pathlib import Path

from pydantic import ValidationError

from kvdesk import paths
from kvdesk.cli.output import say
from kvdesk.cli.parser import Parser
from kvdesk.errors import ModelFileError, UserError
from kvdesk.protocol.chat import ModelLoaded
from kvdesk.settings import CacheType, ContextSettings
from kvdesk.translation import tr


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", metavar="FILE", type=Path, help=tr("GGUF file; the embedded SmolLM2-135M by default")
    )


def add_context(parser: Parser, n_ctx: str = "") -> None:
    """Context settings by llama.cpp's names; the defaults are those of `ContextSettings`. `n_ctx`: help for a command
    with another number of cells.
    """
    types = [t.value for t in CacheType]
    parser.add_argument("--n-ctx", type=int, metavar="N", help=n_ctx or tr("cells of the KV cache (default 4096)"))
    parser.add_argument("--n-batch", type=int, metavar="N", help=tr("most tokens in one llama_decode (default 512)"))
    parser.add_argument("--n-ubatch", type=int, metavar="N", help=tr("most tokens computed at once (default 512)"))
    parser.flag("--exact", tr("answers bit for bit as without a cache, slower"))
    parser.add_argument("--n-seq-max", type=int, metavar="N", help=tr("most sequences in the cache (default 8)"))
    parser.add_argument("--threads", type=int, metavar="N", help=tr("threads (default: physical cores)"))
    parser.add_argument("--type-k", choices=types, help=tr("data type of K (default f16)"))
    parser.add_argument("--type-v", choices=types, help=tr("data type of V (default f16)"))
    parser.flag("--no-flash-attn", tr("switch flash attention off"))
    parser.flag("--streams", tr("one stream for each sequence (kv_unified off)"))
    parser.flag("--no-swa-full", tr("a small cache for sliding-window layers (swa_full off)"))
    parser.add_argument(
        "--n-rs-seq",
        type=int,
        metavar="N",
        help=tr("earlier states kept of each sequence of a hybrid model (default 0)"),
    )


def add_drafts(parser: Parser) -> None:
    """The option of *Speculative decoding*."""
    parser.flag("--drafts", tr("guess next tokens and verify several in one batch if that pays (default: the setting)"))


def add_port(parser: Parser, default: int) -> None:
    """The port at which a command listens; see `check_port`."""
    parser.add_argument(
        "--port", type=int, default=default, metavar="N", help=tr("port (default {default})").format(default=default)
    )


def check_port(parser: Parser, args: argparse.Namespace) -> None:
    """End with a usage error where the port is out of range."""
    if not 0 <= args.port <= 65535:
        parser.error("--port: a port is a number from 0 to 65535")


def add_report(parser: Parser, about: str) -> None:
    """A file that is written at the end; see `check_report`."""
    parser.add_argument("--report", metavar="FILE", type=Path, help=about)


def check_report(parser: Parser, args: argparse.Namespace) -> None:
    """End with a usage error if it cannot be written: better now than after minutes."""
    if args.report is None:
        return
    file = args.report.absolute()
    if file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
        parser.error(tr("the report cannot be written to {report}").format(report=args.report))


def check_folder(parser: Parser, option: str, folder: Path) -> None:
    """End with a usage error if nothing can be written into this folder, which may have to be made."""
    folder = folder.absolute()
    place = next(place for place in (folder, *folder.parents) if place.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        parser.error(tr("{option}: nothing can be written to {folder}").format(option=option, folder=folder))


def model_path(args: argparse.Namespace) -> Path:
    """The chosen or the embedded model. Raises ModelFileError when there is none."""
    path = args.model or paths.embedded_model()
    if path is None:
        raise ModelFileError(tr("The embedded model is not installed; name a GGUF file with --model FILE."))
    return Path(path).absolute()


def say_remark(event: ModelLoaded) -> None:
    """On standard error: what the user should know about the model, such as a chat template that is replaced."""
    if event.remark:
        say(event.remark)


def context_settings(args: argparse.Namespace) -> ContextSettings:
    """Raises UserError for a value out of range."""
    names = ("n_ctx", "n_batch", "n_ubatch", "n_seq_max", "type_k", "type_v", "n_rs_seq")
    wanted = {name: getattr(args, name) for name in names}
    wanted |= {"n_threads": args.threads, "n_threads_batch": args.threads}
    off = {"flash_attn": args.no_flash_attn, "kv_unified": args.streams, "swa_full": args.no_swa_full}
    wanted |= {name: False for name, switched_off in off.items() if switched_off}
    wanted["exact"] = args.exact
    try:
        return ContextSettings(**{name: value for name, value in wanted.items() if value is not None})
    except ValidationError as error:
        raise invalid(error) from error


def invalid(error: ValidationError) -> UserError:
    """The first value out of range, by its option."""
    first = error.errors()[0]
    name = str(first["loc"][0])
    option = {"n_threads": "--threads"}.get(name, "--" + name.replace("_", "-"))
    sentence = tr("{option}: {problem} (it is {value}).")
    return UserError(sentence.format(option=option, problem=first["msg"], value=first["input"]))
