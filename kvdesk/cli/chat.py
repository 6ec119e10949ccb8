"""`kvdesk chat`: one conversation with the engine of the window, in this terminal or on standard output."""

import argparse
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from math import exp
from typing import Any, TypeAlias

from kvdesk import paths, values
from kvdesk.chat import Conversation
from kvdesk.cli import options, sampling_options
from kvdesk.cli.chats_there import named
from kvdesk.cli.output import say
from kvdesk.cli.parser import Parser
from kvdesk.conversations.tree import Tree
from kvdesk.errors import StoreInUseError
from kvdesk.headless import running
from kvdesk.host.host import Host
from kvdesk.printable import PICTURES
from kvdesk.protocol.chat import TokenLogprobs, TokenProb, TurnEnded
from kvdesk.protocol.logprobs import as_values, unpack
from kvdesk.settings import Settings
from kvdesk.store.listener import StoreListener, read_tree
from kvdesk.store.writer import StoreWriter, Unsaved
from kvdesk.terminal.dialogue import Dialogue, cost_line
from kvdesk.thinking import LEVELS
from kvdesk.translation import tr


def main(argv: Sequence[str]) -> int:
    """Exit code 0; 1 if a chat that is kept could not be saved. Raises KvdeskError."""
    parser = Parser(
        "chat",
        tr(
            "A conversation in this terminal, with the engine of the window: /help lists the commands. From a pipe, "
            "each line is a message; so is each --prompt."
        ),
    )
    parser.add_argument("--prompt", action="append", metavar="TEXT", help=tr("a turn; may be repeated"))
    parser.add_argument("--system", default="", metavar="TEXT", help=tr("system prompt"))
    parser.flag("--json", tr("one JSON object a line and turn"))
    parser.flag("--logprobs", tr("how likely each token was, and the likeliest alternatives"))
    parser.flag("--keep", tr("store the chat among the window's chats"))
    parser.add_argument("--chat", metavar="ID", help=tr("continue a stored chat, by its id or full title"))
    parser.add_argument("--thinking", choices=LEVELS[1:], help=tr("whether the model reasons before it answers"))
    parser.add_argument("--thinking-budget", type=int, metavar="N", help=tr("most tokens of reasoning"))
    parser.flag("--keep-thinking", tr("earlier reasoning stays in the prompt"))
    options.add_model(parser)
    options.add_context(parser)
    sampling_options.add_sampling(parser)
    args = parser.parse_args(argv)
    if args.prompt is not None and not all(prompt.strip() for prompt in args.prompt):
        parser.error(tr("a prompt must have some text"))
    if args.chat and args.system:
        parser.error(tr("--system: a stored chat already has its system prompt"))
    if args.thinking_budget is not None and args.thinking_budget < 0:
        parser.error(tr("--thinking-budget: a number of tokens, from 0 on"))
    preset = sampling_options.chosen(args)
    system = args.system or preset.system_prompt or ""
    said = {"sampling": preset.sampling, "system_prompt": system, "token_probabilities": args.logprobs}
    settings = Settings().model_copy(update=said)
    context = options.context_settings(args)
    chat = _typed if args.prompt is None and not args.json and _is_terminal() else partial(_read, args)
    lost = list[Unsaved]()
    with _kept(args.chat, lost, keep=args.keep) as kept, running(options.model_path(args), context) as host:
        chat(partial(_dialogue, host, settings, context.n_ctx, _thinking(args), *kept))
    return int(bool(lost))


Kept: TypeAlias = tuple[StoreListener | None, tuple[Conversation, Tree] | None]
"""What keeps the chat, and the kept chat that goes on."""
Begin: TypeAlias = Callable[[Callable[[str], None]], Dialogue]
"""Makes the dialogue of that which shows each piece of an answer."""


def _dialogue(
    host: Host,
    settings: Settings,
    n_ctx: int,
    thinking: Mapping[str, Any],
    listener: StoreListener | None,
    stored: tuple[Conversation, Tree] | None,
    on_text: Callable[[str], None],
) -> Dialogue:
    """With remarks about the model and the context on standard error."""
    dialogue = Dialogue(host, settings, on_text, listener, stored)
    if thinking:
        if not dialogue.levels:
            say(tr("The chat template of this model has no switch for thinking."))
        dialogue.think(values.replace(dialogue.conversation.thinking, **thinking))
    if dialogue.remark:
        say(dialogue.remark)
    made = dialogue.store.context
    if made is not None and n_ctx not in (0, made.n_ctx):
        say(tr("n_ctx is {n_ctx:,}: llama.cpp rounds {n_ctx2:,} up.").format(n_ctx=made.n_ctx, n_ctx2=n_ctx))
    return dialogue


def _thinking(args: argparse.Namespace) -> dict[str, Any]:
    """What the options change."""
    wanted = {"level": args.thinking, "budget": args.thinking_budget, "keep": args.keep_thinking or None}
    return {name: value for name, value in wanted.items() if value is not None}


def _typed(begin: Begin) -> None:
    from kvdesk.terminal.loop import converse_with

    converse_with(begin)


def _read(args: argparse.Namespace, begin: Begin) -> None:
    """The prompts of the command line, else a line of standard input each."""
    with closing(begin(lambda text: None if args.json else print(_shown(text), end="", flush=True))) as dialogue:
        for turn, prompt in enumerate(args.prompt or _lines(), start=1):
            ended = dialogue.ask(prompt)
            answer = dialogue.messages[-1]
            logprobs = unpack(answer.probabilities)
            if args.json:
                line = _figures(turn, ended, answer.text)
                if args.logprobs:
                    line["logprobs"] = list(map(as_values, logprobs))
                print(json.dumps(line, ensure_ascii=False), flush=True)
            else:
                print(
                    "".join(f"\n{_table_row(one)}" for one in logprobs), f"[{cost_line(ended)}]\n", sep="\n", flush=True
                )


def _shown(text: str) -> str:
    """An answer must not command the terminal; to a file it goes as it is."""
    return text.translate(PICTURES) if sys.stdout is not None and sys.stdout.isatty() else text


def _figures(turn: int, ended: TurnEnded, text: str) -> dict[str, object]:
    figures = values.asdict(ended.stats)
    for name in ("why", "vocab", "earlier_prefilled", "earlier_generated"):
        del figures[name]
    return {"turn": turn, **figures, "text": text, "state": ended.state, "note": ended.note}


def _table_row(one: TokenLogprobs) -> str:
    """A token with its probability, and the alternatives with theirs."""
    others = (other for other in one.top if other.token != one.chosen.token)
    return f"{_percent(one.chosen)}    " + "  ".join(map(_percent, others))


def _percent(prob: TokenProb) -> str:
    return f"{exp(prob.logprob):7.2%} {prob.piece.decode('utf-8', 'replace')!r}"


def _lines() -> Iterator[str]:
    """Those of standard input that have some text."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    for line in sys.stdin or ():
        if line.strip():
            yield line.rstrip("\r\n")


def _is_terminal() -> bool:
    """Whether a user sits before standard input and output; both are None if there is no console."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


@contextmanager
def _kept(name: str | None, lost: list[Unsaved], *, keep: bool) -> Iterator[Kept]:
    """The store of the window, if the chat is kept. At the end `lost` gets what could not be saved. Raises StoreError:
    a window has it open, for one; UserError if no chat has the name.
    """
    if not (keep or name):
        yield None, None
        return
    paths.make_private()
    writer = StoreWriter(paths.database_file(), lambda error: say(str(error)))
    try:
        try:
            writer.opened.result()
        except StoreInUseError as error:
            sentence = tr("The chats are open in kvdesk's window: close it, or omit --keep and --chat.")
            raise StoreInUseError(sentence, error.detail) from error
        listener = StoreListener(writer)
        stored = None
        known = listener.load()
        if name:
            chat = named(known, name)[0]
            stored = chat, writer.ask(lambda store: read_tree(store, chat.id, chat.leaf)).result()
        yield listener, stored
    finally:
        if unsaved := writer.close():
            lost.append(unsaved)
            sys.stderr.write(unsaved.at_the_end)
