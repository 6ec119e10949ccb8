"""`kvdesk xray`: what a model looks at while it reads a text, head by head."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kvdesk.backends.local.attention.text import read_text
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.llama.open_model import OpenedModel, open_model
from kvdesk.cache.attention_weights import AttentionColumns, LayerAttention, chosen, combined, received, sinks
from kvdesk.cli import options
from kvdesk.cli.parser import Parser
from kvdesk.cli.xray_page import Seen, write
from kvdesk.errors import UserError
from kvdesk.settings import ContextSettings
from kvdesk.translation import tr
from kvdesk.values import replace

LAST, TOP = 64, 16


def main(argv: Sequence[str]) -> int:
    """Exit code 0. Raises KvdeskError."""
    args = _parser().parse_args(argv)
    if args.last < 1 or args.top < 1:
        raise UserError(tr("--last and --top are numbers from 1 on."))
    path, settings = options.model_path(args), options.context_settings(args)
    opened = open_model(path, settings)
    try:
        columns, layers = _read(opened, settings, args)
        texts = [opened.model.vocab.label(int(token)) for token in columns.token]
        chosen = _chosen(layers, args.layer, args.head)
    finally:
        opened.model.close()
    seen = _seen(path.name, chosen, texts)
    if args.json:
        print(json.dumps(_values(opened.model, seen, columns, chosen), indent=1))
    else:
        print(_text(seen, args.top))
    if args.out is not None:
        print(tr("Written: {files}").format(files=", ".join(map(str, write(args.out, seen, chosen, args.top)))))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser("xray", tr("What a model looks at while it reads a text: the attention of each layer and head."))
    parser.add_argument(
        "--prompt", metavar="TEXT", required=True, help=tr("the text; marks such as <|im_start|> count")
    )
    parser.add_argument("--layer", metavar="N", type=int, action="append", help=tr("this layer, from 0 on; repeatable"))
    parser.add_argument("--head", metavar="N", type=int, action="append", help=tr("this head, from 0 on; repeatable"))
    parser.add_argument("--last", metavar="N", type=int, default=LAST, help=tr("of the last N tokens (default 64)"))
    parser.add_argument("--top", metavar="N", type=int, default=TOP, help=tr("rows of the table (default 16)"))
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help=tr("one JSON object"))
    output.add_argument("--out", metavar="DIR", type=Path, help=tr("also a page and a picture of all heads, in DIR"))
    options.add_model(parser)
    options.add_context(parser, tr("most tokens of the text (default 4096)"))
    return parser


def _read(
    opened: OpenedModel, settings: ContextSettings, args: argparse.Namespace
) -> tuple[AttentionColumns, tuple[LayerAttention, ...]]:
    vocab = opened.model.vocab
    if not vocab.has_text:
        raise UserError(tr("This model has no text tokenizer: it reads no text."))
    tokens = vocab.tokenize(args.prompt, add_special=True, parse_special=True)
    most = settings.n_ctx or opened.model.n_ctx_train
    if len(tokens) > most:
        raise UserError(
            tr("The text has {n:,} tokens, more than {most:,}: --n-ctx allows more.").format(n=len(tokens), most=most)
        )
    return read_text(opened.model, opened.header, settings, tokens, args.last)


def _chosen(
    layers: Sequence[LayerAttention], numbers: Sequence[int] | None, heads: Sequence[int] | None
) -> list[LayerAttention]:
    """These layers, with these heads of each alone. Raises UserError if one does not exist."""
    known = [layer.layer for layer in layers]
    for number in numbers or ():
        if number not in known:
            raise UserError(
                tr("Layer {number} has no attention; these have: {known}.").format(
                    number=number, known=", ".join(map(str, known))
                )
            )
    chosen = [layer for layer in layers if not numbers or layer.layer in numbers]
    n_heads = max(layer.n_heads for layer in chosen)
    for head in heads or ():
        if not 0 <= head < n_heads:
            raise UserError(tr("There is no head {head}: they are 0 to {last}.").format(head=head, last=n_heads - 1))
    if not heads:
        return chosen
    wanted = sorted(set(heads))
    kept = [[head for head in wanted if head < layer.n_heads] for layer in chosen]
    return [
        replace(layer, weights=layer.weights[some], elsewhere=layer.elsewhere[some])
        for layer, some in zip(chosen, kept, strict=True)
        if some
    ]


def _seen(model: str, layers: Sequence[LayerAttention], texts: list[str]) -> Seen:
    n_rows = layers[0].weights.shape[1]
    indexed = chosen(layers, n_rows)
    return Seen(
        model=model,
        texts=texts,
        n_rows=n_rows,
        layers=[layer.layer for layer in layers],
        n_heads=sum(layer.n_heads for layer in layers),
        shares=(received(combined(layers)) / n_rows).tolist(),
        sinks=np.flatnonzero(sinks(layers, n_rows)).tolist(),
        chosen=None if indexed is None else indexed.tolist(),
    )


def _text(seen: Seen, n: int) -> str:
    heads = tr("position"), tr("share"), *([tr("indexer")] if seen.chosen is not None else []), tr("token")
    rows = [heads, *((f"{i:,}", *seen.percents(i), repr(seen.texts[i]) + seen.mark(i)) for i in seen.best(n))]
    wide = [8, *(max(6, len(head)) for head in heads[1:-1])]
    lines = ["  ".join((*(f"{cell:>{n}}" for cell, n in zip(row, wide, strict=False)), row[-1])) for row in rows]
    return "\n".join((seen.title, "", *lines))


def _values(model: Model, seen: Seen, columns: AttentionColumns, layers: Sequence[LayerAttention]) -> dict[str, Any]:
    """`shares[head][position]`: of all that the rows look at, what goes to the token at this position. `chosen`: for
    what share of the rows an indexer chose it; null without one.
    """
    tokens = [
        {
            "position": i,
            "id": int(columns.token[i]),
            "text": text,
            "share": seen.shares[i],
            "sink": i in seen.sinks,
            "chosen": None if seen.chosen is None else seen.chosen[i],
        }
        for i, text in enumerate(seen.texts)
    ]
    return {
        "model": seen.model,
        "architecture": model.facts.architecture,
        "n_rows": seen.n_rows,
        "tokens": tokens,
        "layers": [
            {
                "layer": layer.layer,
                "window": bool(layer.cache),
                "shares": layer.weights.mean(axis=1).tolist(),
                "elsewhere": layer.elsewhere.mean(axis=1).tolist(),
                "chosen": None if layer.chosen is None else layer.chosen.mean(axis=0).tolist(),
            }
            for layer in layers
        ],
    }
