"""Arguments, then the application or a headless command. Imports only what is asked for."""

import argparse
import builtins
import gc
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from kvdesk import translation
from kvdesk.cli.output import take_every_text
from kvdesk.cli.parser import Parser
from kvdesk.errors import EngineError, UserError
from kvdesk.translation import marked, tr

COMMANDS = {
    "chat": marked("a chat in this terminal, or the turns of one conversation for a script"),
    "serve": marked("the same engine and cache over HTTP: protocols of OpenAI, Anthropic, llama-server, Ollama"),
    "launch": marked("a coding agent on this cache, and a score of what the cache saved"),
    "demo": marked("a guided tour of the window with the real model"),
    "bench": marked("measurements, as ratios within one run"),
    "lab": marked("experiments that answer questions about the KV cache, with a report"),
    "audit": marked("random operations on the cache, each compared with the engine cell by cell"),
    "verify-engine": marked("the audit over another libllama of the same ABI, with a report for its authors"),
    "selftest": marked("checks that this installation is complete"),
    "export": marked("chats to a file: JSON with everything, Markdown or HTML"),
    "import": marked("chats from a file of kvdesk, ChatGPT, Open WebUI, LM Studio, Jan or llama.cpp"),
    "doctor": marked("why requests missed the cache, from the log of llama-server, Ollama or LM Studio"),
    "attach": marked("the cache of a running llama-server, from its log: cells and requests"),
    "watch": marked("starts llama-server so that it prints its cells, and shows them"),
    "open": marked("a slot file or another saved KV cache: what is in it, and whether it can be restored"),
    "proxy": marked("why requests to another server miss its cache, by comparing them on their way"),
    "record": marked("records what happens to a cache to one file: of a kvdesk that serves, or from a log"),
    "replay": marked("a journal of a cache, operation by operation, without a model"),
    "xray": marked("what a model looks at while it reads a text, head by head"),
    "capabilities": marked("which operations the cache of a model allows, and why not"),
}
CHILDREN = {
    "--engine": "kvdesk.app.engine_child:child_main",
    "--preflight": "kvdesk.backends.local.preflight_child:child_main",
    "--experiment": "kvdesk.experiments.child:child_main",
    "--attachment": "kvdesk.attachments.child:child_main",
    "--read-chats": "kvdesk.conversations.porting.reader_child:child_main",
    "--read-state": "kvdesk.state_files.child:child_main",
    "--render": "kvdesk.backends.local.prompt.template_child:child_main",
    "--embed": "kvdesk.backends.local.embedding_child:child_main",
    "--tool-server": "kvdesk.tools.server_child:child_main",
    "--formulas": "kvdesk.ui.markdown.formula_child:child_main",
    "--on-library": "kvdesk.backends.local.llama.other_library:child_main",
    "--busy": "kvdesk.experiments.busy:child_main",
    "--chat-alone": "kvdesk.experiments.benchmarks.engine:chat_alone",
}
"""Processes that kvdesk starts (`kvdesk.children`): each gets its parent and the other arguments."""
_MODULES = {"export": "export_chats", "import": "import_chats", "open": "open_state", "verify-engine": "verify_engine"}
"""Modules that cannot have the name of their command, or should not."""
_STUB_WRITER = "shibokensupport.signature.lib.pyi_generator"


def main(argv: Sequence[str] | None = None) -> int:
    """Entry of the `kvdesk` command. Returns the exit code; 2 after a sentence about what the user can change."""
    take_every_text()
    _leave_bundle()
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except ImportError as error:
        sentence = _what_is_missing(error)
        if not sentence:
            raise
        sys.stderr.write(f"{sentence}\n")
        return 2


def _what_is_missing(error: ImportError) -> str:
    """The sentence for a package, or a library of the system, that is not installed; "" for any other error."""
    if not isinstance(error, ModuleNotFoundError):
        from kvdesk.app.display import missing_import

        return missing_import(error)
    if error.name is None or error.name.partition(".")[0] == "kvdesk":
        return ""
    sentence = tr("This needs more than the core of kvdesk ({name} is missing): pip install 'kvdesk[app]'.")
    return sentence.format(name=error.name)


def _leave_bundle() -> None:
    """Of a package for Linux: what this process starts gets the environment that it was given."""
    from kvdesk.paths import bundle_dir

    if sys.platform == "linux" and (bundle := bundle_dir()) is not None:
        from kvdesk.children.environment import give_back

        give_back(os.environ, str(bundle))


def _run(arguments: list[str]) -> int:
    """Raises UserError."""
    _install_language(arguments)
    if arguments and arguments[0] in COMMANDS:
        return _run_command(arguments[0], arguments[1:])
    if arguments and arguments[0] in CHILDREN:
        from kvdesk.children import entry

        return entry.run(CHILDREN[arguments[0]], arguments[1:])
    commands = "\n".join(f"  kvdesk {name:13} {tr(what)}" for name, what in COMMANDS.items())
    parser = Parser(
        "",
        tr("Chat with GGUF models on a laptop CPU and watch what the KV cache is doing."),
        usage="kvdesk [FILE]\n       kvdesk COMMAND …",
        epilog=tr("commands (each has --help):") + f"\n{commands}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help=tr("GGUF file to open; without one the model used last")
    )
    parser.flag("--version", tr("versions of kvdesk and what it is made of"))
    with _printing():
        args = parser.parse_args(arguments)
        if args.version:
            from kvdesk.cli import version

            return version.main()
    if args.file:
        _check_file(args.file)
    return _run_window(args.file)


def _install_language(arguments: Sequence[str]) -> None:
    """That of the user, on the terminal and in the sentences of child processes; JSON is English everywhere."""
    from kvdesk.cli import language

    if "--json" in arguments:
        translation.install(translation.english)
    else:
        language.install_language()


def _check_file(given: str) -> None:
    """Raises UserError for what is neither a file nor a command."""
    path = Path(given)
    if path.is_dir():
        raise UserError(tr("{given} is a folder; kvdesk opens a GGUF file.").format(given=given))
    if path.exists():
        return
    if path.suffix or path.name != given:
        raise UserError(tr("There is no file {given}.").format(given=given))
    from difflib import get_close_matches

    near = get_close_matches(given, COMMANDS, 1)
    advice = (
        tr("Did you mean `kvdesk {near}`?").format(near=near[0]) if near else tr("`kvdesk --help` lists the commands.")
    )
    raise UserError(tr("{given} is no command and no file. {advice}").format(given=given, advice=advice))


def _run_window(file: str | None) -> int:
    """The application. Raises UserError if it cannot be shown."""
    gc.disable()  # imports make nothing but what stays
    try:
        _import_qt()
        from kvdesk.app.application import run
    finally:
        gc.enable()  # the application decides for itself
    return run(file)


def _import_qt() -> None:
    """PySide6 wraps `import` to look into the source of every module for `from __feature__ import`: a sixth of the
    start, and 8 MB that stay (shibokensupport/feature.py). kvdesk uses no features. It also compiles what writes type
    stubs, each time (shibokensupport/signature/loader.py): an empty module takes its place, once PySide6 has removed
    all modules of that name (signature_bootstrap.py).
    """
    plain = builtins.__import__
    empty = ModuleType(_STUB_WRITER)
    empty.__spec__ = ModuleSpec(_STUB_WRITER, None)

    def importing(name: str, *rest: Any, **named: Any) -> ModuleType:
        if name.startswith("shibokensupport"):
            sys.modules.setdefault(_STUB_WRITER, empty)
        return plain(name, *rest, **named)

    builtins.__import__ = importing
    try:
        importlib.import_module("PySide6.QtCore")
    finally:
        builtins.__import__ = plain


def _run_command(name: str, arguments: list[str]) -> int:
    """A headless command. Raises UserError."""
    with _printing():
        command = importlib.import_module(f"kvdesk.cli.{_MODULES.get(name, name)}")
        try:
            return int(command.main(arguments))
        except EngineError as error:
            raise UserError(str(error), error.detail) from error


@contextmanager
def _printing() -> Iterator[None]:
    """All that is printed inside is written. Ctrl+C, a reader that went away and a full disk end the process without a
    trace on the terminal: raises SystemExit.
    """
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:
        _print_no_more()
        raise SystemExit(141) from None
    except OSError as error:  # a full disk, for one: everything that is read has its own sentence
        sys.stderr.write(tr("The output cannot be written: {strerror}.\n").format(strerror=error.strerror or error))
        _print_no_more()
        raise SystemExit(1) from None


def _print_no_more() -> None:
    """What is still in the buffer is not written at exit either."""
    with suppress(OSError, AttributeError, ValueError):  # there is no output, or it is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
