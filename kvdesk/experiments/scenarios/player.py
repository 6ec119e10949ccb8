"""A history, done with a context of llama.cpp, event by event."""

from kvdesk.cache.take_out import take_out
from kvdesk.experiments.raw_context import RawContext
from kvdesk.experiments.scenarios.history import Copied, Event, Kept, Loaded, Paused, Read, Sequences, Slid, Wrote

States = dict[tuple[int, ...], bytes]
"""Saved states of sequences, by their tokens."""


class Player:
    """states: what `Loaded` takes; it is read if there is none, and put in.

    Token ids that the model does not have are taken modulo its number of them: the time is the same.
    """

    def __init__(self, context: RawContext, n_vocab: int, states: States) -> None:
        self._context, self._n_vocab, self._states = context, n_vocab, states
        self._sequences = Sequences()

    def do(self, event: Event) -> list[float]:
        """Seconds in llama_decode, one for each call; none if nothing is computed for an answer.

        Raises ContextError if llama.cpp takes something not, and RefusedCall if a model cannot do it.
        """
        context, held = self._context, self._sequences.tokens
        seconds: list[float] = []
        match event:
            case Read(seq_id, tokens):
                seconds.append(context.read(self._known(tokens), len(held.get(seq_id, ())), seq_id).seconds)
            case Wrote(seq_id, tokens):
                start = len(held.get(seq_id, ()))
                for i, token in enumerate(self._known(tokens)):
                    seconds.append(context.read([token], start + i, seq_id).seconds)
            case Loaded(seq_id, tokens):
                self._load(seq_id, tokens)
            case Copied(source, target, n):
                context.seq_cp(source, target, len(held.get(target, ())), n)
            case Kept(seq_id, n):
                context.seq_rm(seq_id, n, -1)
            case Slid(seq_id, start, n):
                take_out(context, seq_id, [(start, start + n)])
            case Paused():
                pass
        self._sequences.follow(event)
        return seconds

    def _load(self, seq_id: int, tokens: tuple[int, ...]) -> None:
        before = self._sequences.tokens.get(seq_id, [])
        known = self._known(tokens)
        state = self._states.get(tokens) if not before else None
        if state is None:
            self._context.read(known, len(before), seq_id)
            if not before:
                self._states[tokens] = self._context.saved(seq_id)
        else:
            self._context.restore(seq_id, state, known)

    def _known(self, tokens: tuple[int, ...]) -> list[int]:
        return [token % self._n_vocab for token in tokens]
