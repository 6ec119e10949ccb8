"""The KV cache, explained with the model that is open and the chat that is shown: texts, and the numbers of their
figures. No Qt.
"""

from kvdesk.cache.snapshot import CacheSnapshot
from kvdesk.library.ggml_types import BY_NAME
from kvdesk.message import TurnStats
from kvdesk.protocol.cache import ContextInfo, MessageSpan
from kvdesk.quantities import cells_text, seconds_text, size_text, tokens_text
from kvdesk.translation import tr
from kvdesk.values import dataclass
from kvdesk.viewmodel.cells.readout import totals

LENGTHS = (1024, 4096, 16_384, 65_536)
"""Tokens of contexts whose bytes are compared."""
TYPES = ("f16", "q8_0", "q4_0")
"""Types of K and V whose bytes are compared."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a figure. `value` has the unit of the others; `text` is the value as it is read."""

    label: str
    value: float
    text: str


@dataclass(frozen=True, slots=True)
class Part:
    """A heading, a few sentences and a figure. `missing` says what would fill a figure without bars."""

    title: str
    text: str
    bars: tuple[Bar, ...] = ()
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the figures are made from; None if it is not known. `stats` and `spans` are those of the shown chat."""

    context: ContextInfo | None = None
    snapshot: CacheSnapshot | None = None
    n_layer: int = 0
    n_ctx_train: int = 0
    own_cells: int = 0
    stats: TurnStats | None = None
    spans: tuple[MessageSpan, ...] = ()


def parts(facts: Facts) -> tuple[Part, ...]:
    """From what a cell holds to what an edit costs, always the same parts in the same order."""
    return (
        Part(
            tr("What is kept"),
            tr(
                "A model writes one token at a time, and looks at all tokens before it. Each layer keeps a key (K) and "
                "a value (V) of every token, so that each token is computed once. A cell holds the K and V of one "
                "token."
            ),
            _cell(facts),
            tr("Open a model on this computer to see its numbers."),
        ),
        Part(
            tr("How long a context fits"),
            tr("The cache grows with each token. Its memory is reserved when the context is made."),
            _lengths(facts),
            tr("With windows or recurrent layers, the bytes do not grow with each token alone."),
        ),
        Part(
            tr("Why a second turn is fast"),
            tr(
                "The prompt of a second turn begins with the whole first turn. The cells of the first turn are in the "
                "cache, so only the new message is read. Here is the last answer of the chat that is shown."
            ),
            _turn(facts.stats),
            tr("Ask two questions in one chat to see it."),
        ),
        Part(
            tr("What an edit costs"),
            tr(
                "Reuse ends at the first token that differs, and everything after it is read again. The earlier a "
                "message is, the more its edit costs."
            ),
            _edits(facts),
            tr("Ask a question to see what an edit of it would cost."),
        ),
        Part(
            tr("When the cache is full"),
            tr(
                "A token can be written only into a free cell. When no cell is free, idle chats leave the cache first. "
                "When a chat has no room even then, its oldest messages leave it, or its answer stops."
            ),
            _room(facts),
            tr("Open a model on this computer to see its cells."),
        ),
        Part(
            tr("Windows and recurrent layers"),
            tr(
                "Some layers look back a fixed number of tokens only: a sliding window. Recurrent layers keep one "
                "state for each sequence in place of cells. Such a model cannot always return to an earlier place; "
                "it then reads the text again."
            ),
            _reach(facts),
            tr("Open a model on this computer to see how far its layers look back."),
        ),
        Part(
            tr("Smaller numbers"),
            tr(
                "K and V can be stored in fewer bits. q8_0 changes answers about as much as rounding does, q4_0 more. "
                "The settings of the context choose the types."
            ),
            _types(facts),
            tr("Open a model on this computer to see its bytes."),
        ),
        Part(
            tr("Removed is not always forgotten"),
            tr(
                "Cells that come after a message were computed while the model could see it. They may still contain "
                "some of it after its own cells are gone. Only reading them again removes all of it."
            ),
            _ghosts(facts.spans),
            tr("Ask a question to see how many cells were computed after it."),
        ),
    )


def _n_bytes(context: ContextInfo | None) -> float:
    """Of K and V for one token of the context."""
    return (context.k_bytes + context.v_bytes) / context.n_ctx if context is not None and context.n_ctx else 0.0


def _cell(facts: Facts) -> tuple[Bar, ...]:
    context = facts.context
    if context is None or not _n_bytes(context):
        return ()
    rows = (
        (tr("K of one token, {type}").format(type=context.type_k), context.k_bytes / context.n_ctx),
        (tr("V of one token, {type}").format(type=context.type_v), context.v_bytes / context.n_ctx),
        (tr("Both in one of {n} layers").format(n=facts.n_layer), _n_bytes(context) / max(1, facts.n_layer)),
    )
    return tuple(Bar(label, value, tr("{n} bytes").format(n=f"{value:,.0f}")) for label, value in rows if value)


def _lengths(facts: Facts) -> tuple[Bar, ...]:
    per_token = _n_bytes(facts.context)
    if not per_token or facts.context is None or not _is_plain(facts):
        return ()
    longest = facts.n_ctx_train or max(LENGTHS)
    lengths = sorted({facts.context.n_ctx, *(n for n in LENGTHS if n <= longest)})
    return tuple(Bar(_named(n, facts.context.n_ctx), n * per_token, size_text(n * per_token)) for n in lengths)


def _named(n: int, n_ctx: int) -> str:
    return (tr("{n} tokens, now") if n == n_ctx else tr("{n} tokens")).format(n=f"{n:,}")


def _is_plain(facts: Facts) -> bool:
    """Whether every cell of every layer is one token of the context."""
    context, snapshot = facts.context, facts.snapshot
    if context is None or context.recurrent_bytes:
        return False
    return snapshot is not None and all(one.n_swa == 0 for one in snapshot.maps)


def _turn(stats: TurnStats | None) -> tuple[Bar, ...]:
    if stats is None or not stats.prompt_tokens:
        return ()
    read = tokens_text(stats.prefilled_tokens)
    if stats.ttft_ms:
        read = tr("{tokens}, first token after {time}").format(tokens=read, time=seconds_text(stats.ttft_ms / 1e3))
    return (
        Bar(tr("In the cache"), stats.reused_tokens, tokens_text(stats.reused_tokens)),
        Bar(tr("Read"), stats.prefilled_tokens, read),
    )


def _edits(facts: Facts) -> tuple[Bar, ...]:
    spans, stats = facts.spans, facts.stats
    speed = None if stats is None else stats.reading_tok_s
    found = []
    for i in sorted({0, len(spans) // 2, len(spans) - 1} if spans else ()):
        n = spans[-1].p1 - spans[i].p0
        text = tr(", ").join([tokens_text(n), *([seconds_text(n / speed)] if speed else [])])
        found.append(Bar(tr("Message {n}").format(n=i + 1), n, text))
    return tuple(found)


def _room(facts: Facts) -> tuple[Bar, ...]:
    if facts.snapshot is None or not facts.snapshot.maps:
        return ()
    found = totals(facts.snapshot)
    rows = (
        (tr("This chat"), facts.own_cells),
        (tr("Other chats"), max(0, found.used - facts.own_cells)),
        (tr("Free"), found.capacity - found.used),
    )
    return tuple(Bar(label, n, cells_text(n)) for label, n in rows)


def _reach(facts: Facts) -> tuple[Bar, ...]:
    snapshot, context = facts.snapshot, facts.context
    if snapshot is None or context is None:
        return ()
    found = []
    for one in snapshot.maps:
        n = one.n_swa or context.n_ctx_seq
        label = tr("With a window, back to") if one.n_swa else tr("Without a window, back to")
        if one.name != "indexer":
            found.append(Bar(label, n, tokens_text(n)))
    if context.recurrent_bytes:
        n_bytes = size_text(context.recurrent_bytes / context.n_seq_max)
        found.append(Bar(tr("Recurrent layers keep"), 0, tr("one state of {size}").format(size=n_bytes)))
    return tuple(found)


def _types(facts: Facts) -> tuple[Bar, ...]:
    context = facts.context
    if context is None or not _n_bytes(context):
        return ()
    n_numbers = context.k_bytes / _width(context.type_k) + context.v_bytes / _width(context.type_v)
    is_now = {context.type_k, context.type_v}
    names = [*TYPES, *sorted(is_now - {*TYPES})]
    label = {name: tr("{type}, now").format(type=name) if is_now == {name} else name for name in names}
    return tuple(Bar(label[name], n_numbers * _width(name), size_text(n_numbers * _width(name))) for name in names)


def _width(name: str) -> float:
    """Bytes of a number."""
    return BY_NAME[name].size / BY_NAME[name].block


def _ghosts(spans: tuple[MessageSpan, ...]) -> tuple[Bar, ...]:
    if not spans:
        return ()
    rows = (
        (tr("Cells of the first message"), spans[0].p1 - spans[0].p0),
        (tr("Computed after it"), spans[-1].p1 - spans[0].p1),
    )
    return tuple(Bar(label, n, cells_text(n)) for label, n in rows)
