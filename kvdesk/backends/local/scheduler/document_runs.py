"""Documents of a request: finds their tokens in its prompt, puts there what need not be read, and says so."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from kvdesk.backends.local.cache_manager.documents import LEAST_TOKENS, READ_AGAIN, Documents, Run
from kvdesk.backends.local.prompt.prompt import Place
from kvdesk.backends.local.scheduler.request import Request
from kvdesk.cache.reuse.explain import counts_sentence
from kvdesk.protocol.chat import Document
from kvdesk.translation import tr
from kvdesk.values import replace


def document_runs(places: Sequence[Place], documents: Sequence[Document]) -> tuple[Run, ...]:
    """The documents that are long enough, in the order of the prompt: the tokens that lie wholly inside of each, which
    are the same wherever it is attached.
    """
    by_message, found = {place.message: place for place in places}, []
    for document in documents:
        if (place := by_message.get(document.message)) is None:
            continue  # it was evicted
        first = bisect_left(place.char_ends, document.start) + 1
        end = bisect_right(place.char_ends, document.end)
        if end - first >= READ_AGAIN + LEAST_TOKENS:
            found.append(Run(document.name, place.first + first, place.first + end, document.message))
    return tuple(sorted(found, key=lambda run: run.start))


def put_next(request: Request, documents: Documents) -> None:
    """If the request has read up to the next document that need not be read, put it into its sequence."""
    while request.splices and request.position == request.splices[0].at:
        splice, *rest = request.splices
        request.splices = tuple(rest)
        if why := documents.put(request.sequence, splice):
            n_put = request.n_put + sum(one.n_tokens for one in rest)
            counts = counts_sentence(request.reused, request.n_asked - request.reused - n_put, n_put)
            request.why = replace(request.why, sentence=counts)
            request.said.append(_is_read(splice.run.name, why))
        else:
            said = tr("{n:,} tokens of {name} were read at another place and put here; answers may differ a little.")
            request.n_put += splice.n_tokens
            request.said.append(said.format(n=splice.n_tokens, name=splice.run.name))


def all_read(runs: Sequence[Run], n_held: int, why: str) -> list[str]:
    """What is said of the documents behind the first `n_held` tokens of a prompt if all are read. `why`: "" if not."""
    return [_is_read(run.name, why) for run in runs if run.end - n_held >= LEAST_TOKENS] if why else []


def _is_read(name: str, why: str) -> str:
    return tr("{name} is read: {why}.").format(name=name, why=why.rstrip("."))
