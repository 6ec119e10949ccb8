"""What was found in saved KV caches, as text for a terminal."""

from collections.abc import Iterator, Sequence
from typing import Final

from kvdesk.printable import printable
from kvdesk.quantities import cells_text, tokens_text
from kvdesk.state_files.found import Difference, Fit, Numbers, State, StateFile, Stream
from kvdesk.translation import marked, plural, tr

MOST_TEXT: Final = 400
"""Characters of the beginning and of the end of the tokens' text that are shown."""
_MOST_RUNS: Final = 8
_FORMATS: Final = {
    "slot": marked("a slot of llama-server (llama_state_seq_save_file, version {version})"),
    "session": marked("a session of llama.cpp (llama_state_save_file, version {version})"),
    "pickle": marked("a Llama.save_state of llama-cpp-python"),
    "kvdesk": marked("a saved state of kvdesk"),
    "sequence": marked("the state of a sequence (llama_state_seq_get_data)"),
    "context": marked("the state of a context (llama_state_get_data)"),
}
CACHES: Final = (marked("cache"), marked("window cache"))


def file_lines(file: StateFile, *, by_layer: bool = True) -> Iterator[str]:
    """One file; `by_layer`: with the numbers of each layer."""
    what = tr(_FORMATS[file.format]).format(version=file.version)
    yield tr("{name}: {what}, {n:,} bytes").format(name=printable(file.name), what=what, n=file.n_bytes)
    if file.architecture:
        yield tr("architecture: {architecture}").format(architecture=printable(file.architecture))
    yield from _token_lines(file)
    if file.made_by:
        parts = ", ".join(f"{name} {value}" for name, value in file.made_by.items())
        yield tr("made by: {parts}").format(parts=printable(parts))
    if file.problem:
        yield printable(file.problem)
    for name, streams in zip(CACHES, file.caches, strict=False):
        for number, stream in enumerate(streams):
            which = tr("{cache}, stream {n}").format(cache=tr(name), n=number) if len(streams) > 1 else tr(name)
            yield f"{which}: {_cells(stream)}"
            yield from _tensor_lines(stream.tensors if by_layer else ())
    if file.states:
        yield tr("recurrent part: {states}").format(states="; ".join(map(_state, file.states)))
        yield from _tensor_lines(file.state_tensors if by_layer else ())


def token_lines(file: StateFile) -> Iterator[str]:
    """Every token: its place, its id, its text if that is known."""
    for i, token in enumerate(file.tokens or ()):
        yield f"{i:8} {token:8}" + (f"  {printable(file.texts[i])}" if file.texts else "")


def fit_lines(fit: Fit) -> Iterator[str]:
    """Whether the file can be restored."""
    answers = {True: tr("would restore: yes"), False: tr("would restore: no"), None: tr("would restore: unknown")}
    yield answers[fit.fits] + (f" ({fit.context})" if fit.context else "")
    yield from (f"  {printable(line)}" for line in (*fit.reasons, *fit.notes))


def difference_lines(difference: Difference, files: Sequence[StateFile]) -> Iterator[str]:
    """How two files differ."""
    if (n := difference.common) is not None:
        counts = [len(file.tokens or ()) for file in files]
        if n == counts[0] == counts[1]:
            yield plural("the same token", "the same %n tokens", n)
        else:
            yield tr("tokens: {n:,} in common, then {first} and {second}").format(
                n=n, first=_token(files[0], n), second=_token(files[1], n)
            )
    if difference.problem:
        yield difference.problem
    for name, (both, first, second) in zip(CACHES, difference.cells, strict=False):
        yield tr("{cache}: {both:,} cells in both, {first:,} only in the first, {second:,} only in the second").format(
            cache=tr(name), both=both, first=first, second=second
        )
    apart = [one for one in difference.tensors if one.n_equal < one.n_cells]
    if difference.tensors and not apart:
        yield tr("K, V and states are equal in the cells of both")
    for one in apart:
        where = (
            f"{one.kind.upper()} {one.layer}"
            if one.cache < 1
            else tr("window {name}").format(name=f"{one.kind.upper()} {one.layer}")
        )
        if one.most is None:
            yield "  " + tr("{where}: another shape or type").format(where=where)
        else:
            yield (
                "  "
                + tr("{where}: {n:,} of {all:,} cells are equal, the largest difference is {most:.4g}").format(
                    where=where, n=one.n_equal, all=one.n_cells, most=one.most
                )
                + (tr(", {relative:.2%} of its norm").format(relative=one.relative) if one.relative is not None else "")
            )


def _token_lines(file: StateFile) -> Iterator[str]:
    if file.tokens is None:
        yield tr("the file contains no tokens")
        return
    yield tokens_text(len(file.tokens))
    if file.texts:
        text = "".join(file.texts)
        if len(text) > 2 * MOST_TEXT:
            text = f"{text[:MOST_TEXT]} […] {text[-MOST_TEXT:]}"
        yield f"  {printable(text)}"
    elif file.tokens:
        ids = [str(token) for token in file.tokens[:12]]
        yield "  " + " ".join(ids) + (" …" if len(file.tokens) > len(ids) else "")


def _token(file: StateFile, n: int) -> str:
    tokens = file.tokens or ()
    if n >= len(tokens):
        return tr("the end")
    return f"{tokens[n]} {printable(file.texts[n])!r}" if file.texts else tr("token {token}").format(token=tokens[n])


def _cells(stream: Stream) -> str:
    if not stream.n_cells:
        return tr("no cells")
    runs = [str(a) if a == b else f"{a}–{b}" for a, b in stream.runs[:_MOST_RUNS]]
    if len(stream.runs) > _MOST_RUNS:
        runs.append(tr("and {n:,} more runs").format(n=len(stream.runs) - _MOST_RUNS))
    text = tr("{cells}, positions {runs}").format(cells=cells_text(stream.n_cells), runs=", ".join(runs))
    if len(stream.sequences) > 1:
        text += tr(", sequences {ids}").format(ids=" ".join(map(str, stream.sequences)))
    if any(one.n_rows for one in stream.tensors):
        text += tr(", V transposed")
    return text


def _state(state: State) -> str:
    text = tr("a state at position {position:,}").format(position=state.position)
    if state.sequences:
        text += tr(", sequences {ids}").format(ids=" ".join(map(str, state.sequences)))
    return text


def _tensor_lines(tensors: Sequence[Numbers]) -> Iterator[str]:
    """A table: one line for each layer, K and V beside each other."""
    by_layer: dict[int, list[Numbers]] = {}
    for one in tensors:
        by_layer.setdefault(one.layer, []).append(one)
    for layer, ones in by_layer.items():
        yield f"  {layer:4}  " + "   ".join(_numbers(one) for one in ones)


def _numbers(one: Numbers) -> str:
    text = f"{one.kind.upper()} {one.type} {one.row_bytes:,} B"
    if one.norm_mean is not None and one.norm_max is not None and one.low is not None and one.high is not None:
        text += tr(" norm {mean:.4g} (most {most:.4g}), {low:.4g} to {high:.4g}").format(
            mean=one.norm_mean, most=one.norm_max, low=one.low, high=one.high
        )
    if one.n_bad:
        text += tr(", {n:,} not finite").format(n=one.n_bad)
    return text
