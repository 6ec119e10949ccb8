"""What a test of an agent calls: `kv_cache` of the pytest plug-in, or a `KvCache` of one's own."""

from collections.abc import Sequence
from pathlib import Path

from kvdesk.errors import UserError
from kvdesk.testing import stable
from kvdesk.testing.prompts import Request, asked_of
from kvdesk.testing.replay import BUDGETS, Replay
from kvdesk.translation import tr


class KvCache:
    """budgets: the file that `Replay.assert_budget` reads."""

    def __init__(self, budgets: str | Path = BUDGETS) -> None:
        self._budgets = Path(budgets)

    def assert_prefix_stable(self, requests: Sequence[Request]) -> None:
        """Each request begins with the whole of the one before. The requests of one conversation, in order: bodies of
        OpenAI's or Anthropic's protocol, lists of messages, rendered prompts, or token ids. Needs no engine.

        Raises CacheMiss, an AssertionError, with the first difference; UserError for what cannot be compared.
        """
        __tracebackhide__ = True  # pytest shows the line of the test
        stable.assert_prefix_stable(requests)

    def replay(self, requests: Sequence[Request], model: str | Path | None = None, *, n_ctx: int = 4096) -> Replay:
        """Have kvdesk's engine read the requests, one after the other, as `kvdesk serve` would; answers are not
        written. model: a GGUF file; None: the embedded one. n_ctx: tokens that the cache has room for.

        Needs `kvdesk[engine]`. Raises UserError for a request or a model that cannot be read.
        """
        asked = [asked_of(request, number) for number, request in enumerate(requests, start=1)]
        try:
            from kvdesk.testing import engine
        except ModuleNotFoundError as error:
            sentence = tr("A replay needs the engine ({name} is missing): pip install 'kvdesk[engine]'.")
            raise UserError(sentence.format(name=error.name)) from error
        file, turns = engine.replayed(asked, Path(model) if model is not None else None, n_ctx)
        return Replay(turns, file.name, self._budgets)
