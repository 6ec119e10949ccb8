"""`kvdesk serve`: the engine and cache of the window over HTTP, in the protocols that clients speak, until Ctrl+C."""

from __future__ import annotations

import argparse
import gc
import math
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kvdesk import paths
from kvdesk.cli import options, sampling_options
from kvdesk.cli.output import say, tell
from kvdesk.cli.parser import Parser
from kvdesk.errors import UserError
from kvdesk.protocol.cache import ContextInfo, ContextReady, UsePolicy
from kvdesk.protocol.chat import EngineDied, LoadModel, ModelLoaded
from kvdesk.protocol.messages import CommandFailed, Event
from kvdesk.protocol.model import LocalFile
from kvdesk.translation import tr
from kvdesk.values import dataclass

if TYPE_CHECKING:
    from kvdesk.server.config import ServerConfig
    from kvdesk.server.server import Server

_LOOK_S = 0.5
"""A signal that another thread gets does not wake the main one, which alone handles it."""
_SAVED_CONTEXTS = 2
"""Saved states take the memory of this many contexts by default: clients keep going back to what the context holds, and
to as much that has left it."""


def main(argv: Sequence[str]) -> int:
    """Exit code 0. Raises KvdeskError."""
    from kvdesk.server.config import DEFAULT_HOST, DEFAULT_PORT

    parser = Parser(
        "serve",
        tr(
            "An HTTP server on the engine and cache of kvdesk, until Ctrl+C. It speaks the protocols of OpenAI (chat "
            "completions, completions, responses, embeddings), Anthropic (messages), llama-server and Ollama (chat, "
            "generate, embed)."
        ),
    )
    parser.add_argument(
        "--host",
        default=DEFAULT_HOST,
        metavar="ADDRESS",
        help=tr("address (default {default})").format(default=DEFAULT_HOST),
    )
    options.add_port(parser, DEFAULT_PORT)
    parser.several("--api-key", "KEY", tr("key that clients must send; may be repeated"))
    parser.several("--inspect-key", "KEY", tr("the same, and it may see the requests of others"))
    parser.several(
        "--allow-origin", "URL", tr("pages of a browser that may ask; localhost is all of this computer, * is all")
    )
    parser.several("--allow-host", "NAME", tr("name of this computer that clients may use"))
    parser.flag("--no-shared-prefixes", tr("requests with different keys share no cells of the cache"))
    parser.add_argument(
        "--reasoning-budget",
        type=int,
        default=-1,
        metavar="N",
        help=tr("most tokens of reasoning, if a request does not specify it (default -1: no limit)"),
    )
    parser.add_argument(
        "--client-share",
        type=int,
        default=100,
        metavar="PERCENT",
        help=tr(
            "share of the cache, and of the memory for saved conversations, that one program may keep (default 100)"
        ),
    )
    parser.add_argument(
        "--cache-ram",
        type=int,
        metavar="MB",
        help=tr("memory for saved conversations (default: twice the context, and at most the setting)"),
    )
    options.add_drafts(parser)
    parser.add_argument(
        "--slot-save-path",
        type=Path,
        metavar="DIR",
        help=tr("folder in which POST /slots/N saves states of sequences; needs --inspect-key"),
    )
    for option, what in (
        ("--embedding-model", tr("GGUF file of the model for embeddings (default: the chat model)")),
        ("--reranking-model", tr("GGUF file of the model that ranks documents (default: the one for embeddings)")),
    ):
        parser.add_argument(option, type=Path, metavar="FILE", help=what)
    parser.add_argument(
        "--pooling",
        default="",
        choices=("none", "mean", "cls", "last", "rank"),
        help=tr(
            "how the vectors of tokens become an embedding (default: as the model specifies, otherwise the last token)"
        ),
    )
    parser.add_argument("--alias", default="", metavar="NAME", help=tr("name of the model in answers"))
    options.add_model(parser)
    options.add_context(parser)
    sampling_options.add_sampling(parser, {"max_tokens": tr("as long as the context")})
    args = parser.parse_args(argv)
    options.check_port(parser, args)
    for option, keys in (("--api-key", args.api_key), ("--inspect-key", args.inspect_key)):
        if any(len(key) < 8 or not key.isascii() or not key.isprintable() for key in keys):
            parser.error(f"{option}: a key has 8 characters or more of ASCII")
    if args.reasoning_budget < -1:
        parser.error("--reasoning-budget: a number of tokens, or -1 for no limit")
    if not 1 <= args.client_share <= 100:
        parser.error("--client-share: a share is a number from 1 to 100")
    if args.cache_ram is not None and args.cache_ram < 0:
        parser.error("--cache-ram: a number of MB, or 0 for none")
    if args.slot_save_path is not None and not args.slot_save_path.is_dir():
        parser.error("--slot-save-path: there is no such folder")
    for option, file in (("--embedding-model", args.embedding_model), ("--reranking-model", args.reranking_model)):
        if file is not None and not file.is_file():
            parser.error(f"{option}: there is no such file")
    return _serve(args)


def _serve(args: argparse.Namespace) -> int:
    from kvdesk.server.config import Key, ServerConfig, is_loopback, new_key

    named = [*((key, False) for key in args.api_key), *((key, True) for key in args.inspect_key)]
    made = ""
    if not named and not is_loopback(args.host):
        made = new_key()
        named = [(made, False)]
    keys = tuple(Key(key, f"key {i}" if len(named) > 1 else "", inspect) for i, (key, inspect) in enumerate(named, 1))
    config = ServerConfig(
        args.host,
        args.port,
        keys,
        tuple(args.allow_origin),
        tuple(args.allow_host),
        share_prefixes=not args.no_shared_prefixes,
        alias=args.alias,
        max_tokens=args.max_tokens or 0,
        reasoning_budget=args.reasoning_budget,
        client_share=args.client_share / 100,
        slot_folder=args.slot_save_path,
        embedding=args.embedding_model,
        pooling=args.pooling,
        reranking=args.reranking_model,
    )
    with serving(config, args) as running:
        tell(f"kvdesk serves {running.load.source.name} at {running.server.url}")
        if made:
            tell(f"API key: {made}")
        _wait(running.over)
        running.check()
    return 0


@contextmanager
def serving(config: ServerConfig, args: argparse.Namespace) -> Iterator[Serving]:
    """The model of the command line, served from here on. Raises UserError if it cannot be opened or served."""
    from kvdesk.backends.local.engine import Engine
    from kvdesk.host.host import GIL_SWITCH_S, Host
    from kvdesk.server.server import Server, check

    check(config)
    load = LoadModel(LocalFile(options.model_path(args)), options.context_settings(args))
    sampling = sampling_options.chosen(args).sampling
    policy = _policy(drafts=args.drafts)
    sys.setswitchinterval(GIL_SWITCH_S)
    host = Host(Engine)
    over = threading.Event()
    ready = _Ready(load, over.set)
    subscription = host.subscribe(lambda: ready.take(subscription.take()))
    engine = threading.Thread(target=host.run, name="kvdesk-engine")
    server = Server(host, config, sampling)
    engine.start()
    try:
        host.submit(policy)
        host.submit(load)
        host.submit(_bounded(policy, ready.wait(), args.cache_ram))
        gc.collect()
        gc.freeze()  # what was loaded stays
        server.start()
        yield Serving(server, load, over, ready)
    finally:
        server.close()
        subscription.close()
        host.shut_down()
        engine.join()


def _policy(*, drafts: bool) -> UsePolicy:
    """What the user wants kvdesk to do with the cache automatically, with *Speculative decoding* if `drafts`. States
    stay in memory: those on the disk are the window's, which may be open at the same time. Model, context and sampling
    are those of the command line alone.
    """
    from kvdesk.store.settings_file import load_settings

    settings, complaint = load_settings(paths.settings_file(make_folder=False))
    if complaint:
        say(complaint)
    return UsePolicy(settings.cache.model_copy(update={"drafts": drafts or settings.cache.drafts}))


def _bounded(policy: UsePolicy, context: ContextInfo | None, cache_ram: int | None) -> UsePolicy:
    """The policy with as much memory for saved states as `cache_ram` says; None: for twice what the context holds, and
    no more than the user set.
    """
    n_mb = policy.policy.memory_mb
    if cache_ram is not None:
        n_mb = cache_ram
    elif context is not None:
        n_mb = min(n_mb, math.ceil(_SAVED_CONTEXTS * context.n_bytes / 1e6))
    return UsePolicy(policy.policy.model_copy(update={"memory_mb": n_mb}), policy.folder)


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that runs. `over`: set when its engine has died."""

    server: Server
    load: LoadModel
    over: threading.Event
    _ready: _Ready

    def check(self) -> None:
        """Raises UserError if the engine has died."""
        if self._ready.died:
            raise UserError(self._ready.died)


class _Ready:
    """Whether the model has been opened; what became of the engine."""

    def __init__(self, load: LoadModel, on_death: Callable[[], None]) -> None:
        self._load, self._on_death = load, on_death
        self._known = threading.Event()
        self._failed: UserError | None = None
        self._context: ContextInfo | None = None
        self.died = ""

    def take(self, events: Sequence[Event]) -> None:
        """On the engine's thread."""
        for event in events:
            match event:
                case CommandFailed() if event.command is self._load:
                    self._failed = UserError(event.sentence, event.detail)
                    self._known.set()
                case ModelLoaded():
                    options.say_remark(event)
                case ContextReady():
                    self._context = event.context
                    self._known.set()
                case EngineDied():
                    self.died = event.sentence
                    self._known.set()
                    self._on_death()

    def wait(self) -> ContextInfo | None:
        """Returns when it has been, with the context. Raises UserError."""
        while not self._known.wait(0.2):
            pass
        if self._failed is not None:
            raise self._failed
        if self.died:
            raise UserError(self.died)
        return self._context


def _wait(over: threading.Event) -> None:
    """Until Ctrl+C, a signal that ends the process, or the end of the engine."""
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGTERM, lambda *_: over.set())
        try:
            while not over.wait(_LOOK_S):
                pass
        except KeyboardInterrupt:
            pass
        finally:
            signal.signal(signal.SIGTERM, before)
    else:
        over.wait()
