"""`kvdesk launch AGENT`: a coding agent in the foreground, on a server here, then a score of its cache."""

import argparse
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from kvdesk import paths
from kvdesk.agents import AGENTS, Agent, Place, environment
from kvdesk.cache.reuse.score import Score, from_json
from kvdesk.children import foreground
from kvdesk.cli import options, sampling_options
from kvdesk.cli.output import say
from kvdesk.cli.parser import Parser
from kvdesk.errors import UserError, explained
from kvdesk.translation import tr

N_CTX: Final = 32768
"""Cells if nobody says: the instructions and tools of an agent alone take 5,000 to 20,000 tokens."""
_SMALL: Final = 16384
"""Tokens below which the instructions and tools of an agent leave little room, or none."""
_RUN_BYTES: Final = 4
_ANSWER_S: Final = 10.0
_FOR_CMD: Final = frozenset('"%&|<>^!\r\n')
"""cmd.exe, which runs batch files, has a meaning for each, also within quotes."""


def main(argv: Sequence[str]) -> int:
    """The exit code of the agent. Raises KvdeskError."""
    ours, theirs = _split(argv)
    parser = _parser()
    args = parser.parse_args(ours)
    if args.url and args.model:
        parser.error("--url: a server has its own model, --model is for one that is started here")
    return _launch(AGENTS[args.agent], args, theirs)


def _split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    at = argv.index("--") if "--" in argv else len(argv)
    return list(argv[:at]), list(argv[at + 1 :])


def _parser() -> Parser:
    parser = Parser(
        "launch",
        tr(
            "Starts a coding agent on this cache: on the window's server if it runs, otherwise on one for this run. "
            "The agent gets a key and settings for this run only; its files and permissions do not change."
        ),
        usage="kvdesk launch {" + ",".join(AGENTS) + "} [options] [-- ARGS]",
        epilog=tr("Everything after -- goes to the agent."),
    )
    parser.add_argument("agent", choices=tuple(AGENTS), metavar="AGENT", help=", ".join(AGENTS))
    parser.add_argument("--url", default="", metavar="URL", help=tr("a running server, such as http://127.0.0.1:8080"))
    parser.add_argument("--api-key", default="", metavar="KEY", help=tr("key of that server"))
    parser.add_argument("--cache-ram", type=int, metavar="MB", help=tr("memory for saved conversations"))
    options.add_drafts(parser)
    options.add_model(parser)
    options.add_context(parser, tr("cells of the KV cache (default {n})").format(n=N_CTX))
    sampling_options.add_sampling(parser, {"max_tokens": tr("as long as the context")})
    return parser


def _launch(agent: Agent, args: argparse.Namespace, theirs: Sequence[str]) -> int:
    """Raises UserError."""
    program = shutil.which(agent.name)
    if program is None:
        said = tr("{agent} is not installed, or not in PATH. To install it: {command}")
        raise UserError(said.format(agent=agent.title, command=agent.install))
    with _place(args) as place:
        command = [program, *agent.options(place), *theirs]
        _check_for_cmd(command)
        variables, removed = environment(os.environ, agent, place)
        _say_start(agent, place, removed)
        with explained(tr("{program} cannot be started: {why}."), program=program):
            code = foreground.run(command, variables)
        _say_score(agent, place)
        return code


# --- the server -------------------------------------------------------------------------------------------------------


@contextmanager
def _place(args: argparse.Namespace) -> Iterator[Place]:
    """The server that was named; that of the window, if no model or context was named; or one for this run. Its key
    has the name of this run. Raises UserError.
    """
    run = secrets.token_hex(_RUN_BYTES)
    if args.url:
        root = args.url.rstrip("/").removesuffix("/v1")
        found = _served(root, f"{args.api_key or 'none'}~{run}")
        if found is None:
            raise UserError(tr("There is no kvdesk at {url} that accepts this key.").format(url=root))
        yield found
    elif args.model is None and args.n_ctx is None and (found := _window_server(run)) is not None:
        yield found
    else:
        with _started(args, run) as place:
            yield place


def _window_server(run: str) -> Place | None:
    """That of the window on this computer; None if it serves nobody."""
    from kvdesk.store.server_key import key_file, read_key
    from kvdesk.store.settings_file import load_settings

    if not key_file().exists():
        return None
    settings, _ = load_settings(paths.settings_file())
    return _served(f"http://127.0.0.1:{settings.serve.port}", f"{read_key(key_file())}~{run}")


@contextmanager
def _started(args: argparse.Namespace, run: str) -> Iterator[Place]:
    """One for this run, at a port that is free, which this run's key opens. Raises UserError."""
    from kvdesk.cli.serve import serving
    from kvdesk.server.config import Key, ServerConfig, new_key

    args.n_ctx = args.n_ctx or N_CTX
    key = new_key()
    config = ServerConfig(port=0, keys=(Key(key),), max_tokens=args.max_tokens or 0)
    with serving(config, args) as running:
        root = running.server.url.removesuffix("/v1")
        place = _served(root, f"{key}~{run}")
        if place is None:
            running.check()
            raise UserError(tr("The server did not start."))
        yield place
        running.check()


def _served(root: str, key: str) -> Place | None:
    """A kvdesk at this address that opens with this key and has a model; None for anything else. Raises UserError if
    it has none.
    """
    found = _asked(root, key, "/v1/models")
    if found is None or "data" not in found:
        return None
    if not found["data"]:
        raise UserError(tr("The kvdesk at {url} has no model open: open one first.").format(url=root))
    model = found["data"][0]
    if model.get("owned_by") != "kvdesk":
        return None
    return Place(root, key, str(model["id"]), int(model["meta"]["n_ctx"]))


def _asked(root: str, key: str, path: str) -> dict[str, Any] | None:
    """What the server answers; None if it does not, or refuses. No proxy of the environment is asked."""
    import httpx2

    try:
        headers = {"authorization": f"Bearer {key}"}
        answer = httpx2.get(f"{root}{path}", headers=headers, timeout=_ANSWER_S, trust_env=False)
        found = answer.raise_for_status().json()
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError):
        return None
    return found if isinstance(found, dict) else None


# --- what is said -----------------------------------------------------------------------------------------------------


def _say_start(agent: Agent, place: Place, removed: Sequence[str]) -> None:
    """The server, and every setting with its reason; on standard error, since standard output is the agent's."""
    said = tr("{agent} on {model} at {url}, with {n_ctx:,} tokens of context")
    say(said.format(agent=agent.title, model=place.model, url=place.root, n_ctx=place.n_ctx))
    shown = agent.shown(place)
    connection = [setting for setting, reason in shown if not reason]
    say("  " + tr("The connection: {settings}").format(settings=", ".join(connection)))
    for reason in dict.fromkeys(reason for _, reason in shown if reason):
        settings = ", ".join(setting for setting, other in shown if other == reason)
        say("  " + tr("{settings}: {reason}").format(settings=settings, reason=tr(reason)))
    if place.n_ctx < _SMALL:
        say("  " + tr("The context is small for an agent: its instructions and tools take 5,000 to 20,000 tokens."))
    if removed:
        say("  " + tr("Removed variables in this run: {names}").format(names=", ".join(removed)))
    if urlsplit(place.root).scheme == "http" and not _is_here(place.root):
        say("  " + tr("The connection to {url} is not encrypted.").format(url=place.root))


def _say_score(agent: Agent, place: Place) -> None:
    found = _asked(place.root, place.key, "/kv/score")
    try:
        score = from_json(found or {})
    except (KeyError, TypeError, ValueError):
        say(tr("The server does not report what its cache did."))
        return
    say(f"kvdesk: {score.sentence}")
    for line in _details(agent, score):
        say(f"  {line}")


def _details(agent: Agent, score: Score) -> list[str]:
    if score.requests:
        return score.lines
    return [tr("{agent} used another server: its own settings may specify one.").format(agent=agent.title)]


def _is_here(root: str) -> bool:
    from kvdesk.server.config import is_loopback

    return is_loopback(urlsplit(root).hostname or "")


def _check_for_cmd(command: Sequence[str]) -> None:
    """Raises UserError for an argument of a batch file that cmd.exe could run as a command."""
    if not command[0].lower().endswith((".cmd", ".bat")):
        return
    for argument in command[1:]:
        if found := _FOR_CMD.intersection(argument):
            said = tr("The argument {argument} contains a character with a special meaning on Windows: {character}")
            raise UserError(said.format(argument=repr(argument), character=repr(min(found))))
