"""`kvdesk chat`: the turns of one conversation through the same engine as the window, on standard output."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kvdesk import values
from kvdesk.chat import TurnStats
from kvdesk.cli import options, sampling_options
from kvdesk.cli.output import say
from kvdesk.cli.parser import Parser
from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.protocol.cache import ContextReady
from kvdesk.protocol.chat import LoadModel, ModelLoaded, TextDelta
from kvdesk.protocol.messages import Event
from kvdesk.protocol.model import LocalFile
from kvdesk.translation import tr


def main(argv: Sequence[str]) -> int:
    """Exit code 0. Raises KvdeskError."""
    parser = Parser(
        prog="kvdesk chat",
        description=tr("The turns of one conversation through the same engine as the window, on standard output."),
    )
    parser.add_argument("--prompt", action="append", required=True, metavar="TEXT", help=tr("a turn; may be repeated"))
    parser.add_argument("--system", default="", metavar="TEXT", help=tr("system prompt"))
    parser.add_argument("--json", action="store_true", help=tr("one JSON object a line and turn"))
    options.add_model(parser)
    options.add_context(parser)
    sampling_options.add_sampling(parser)
    args = parser.parse_args(argv)
    if not all(prompt.strip() for prompt in args.prompt):
        parser.error(tr("a prompt must have some text"))
    headless = HeadlessEngine(None if args.json else _print_text)
    try:
        preset = sampling_options.chosen(args)
        settings = options.context_settings(args)
        loaded = headless.do(LoadModel(LocalFile(options.model_path(args)), settings))
        options.say_remark(next(event for event in loaded if isinstance(event, ModelLoaded)))
        context = next(event.context for event in loaded if isinstance(event, ContextReady))
        if settings.n_ctx not in (0, context.n_ctx):
            sentence = tr("n_ctx is {n_ctx:,}: llama.cpp rounds {n_ctx2:,} up.")
            say(sentence.format(n_ctx=context.n_ctx, n_ctx2=settings.n_ctx))
        chat = HeadlessChat(headless, args.system or preset.system_prompt or "")
        for turn, prompt in enumerate(args.prompt, start=1):
            ended = chat.answer(prompt, preset.sampling)
            stats = ended.stats
            if args.json:
                figures = values.asdict(stats)
                for name in ("why", "vocab", "earlier_prefilled", "earlier_generated"):
                    del figures[name]
                answer = {"text": chat.messages[-1].text, "state": ended.state, "note": ended.note}
                line = {"turn": turn, **figures, **answer}
                print(json.dumps(line, ensure_ascii=False), flush=True)
            else:
                print(f"\n[{_summary(stats)}]{' ' + ended.note if ended.note else ''}\n", flush=True)
    finally:
        headless.close()
    return 0


def _print_text(event: Event) -> None:
    if isinstance(event, TextDelta):
        print(event.text, end="", flush=True)


def _summary(s: TurnStats) -> str:
    return tr(
        "reused {reused_tokens} · prefilled {prefilled_tokens} · first token {ttft_ms:.2f} s · "
        "{decode_tok_s:.0f} tok/s · {generated_tokens} tokens"
    ).format(
        reused_tokens=s.reused_tokens,
        prefilled_tokens=s.prefilled_tokens,
        ttft_ms=s.ttft_ms / 1000.0,
        decode_tok_s=s.decode_tok_s,
        generated_tokens=s.generated_tokens,
    )
