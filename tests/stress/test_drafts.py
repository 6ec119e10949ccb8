"""With *Exact answers* guessed tokens, right or wrong, change nothing: greedy answers are those without drafts, and the
cells of wrong guesses leave no hole.
"""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.policies.drafting import Chance, Draft, DraftSize
from kvdesk.protocol.cache import AuditCache, Audited, UsePolicy
from kvdesk.protocol.chat import CloseConversation, LoadModel
from kvdesk.protocol.model import LocalFile
from kvdesk.settings import CachePolicy, ContextSettings, Sampling
from tests.backends.local.test_drafts import guess
from tests.stress.conftest import Row, forms

SETTINGS: Final = ContextSettings(n_ctx=1024, n_seq_max=2, n_threads_batch=1, exact=True)
GREEDY: Final = Sampling(temperature=0.0, max_tokens=12)
THINGS: Final = ("tea", "birds", "salt", "sleep", "music", "gravity", "maps", "glass", "iron", "rivers")
ASKED: Final = ("Say it again: {0} and {0} and {1}, {0} and {0} and {1}.", "What have {0} and {1} in common?")


WRONG: Final = (0, 1, 2, 3, 7)
"""Every such guess is wrong; 0: none."""


def always(_self: DraftSize, chances: Sequence[Chance], _most: int, _usual: object) -> Draft:
    """Up to eight tokens in every batch, whatever that costs."""
    return Draft(tuple(min(chance.most, 8) for chance in chances), 2.0)


@forms(short=10, long=200)
def test_exact_answers_with_drafts_are_those_without(
    n: int, model_file: Path, row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DraftSize, "choose", always)
    monkeypatch.setattr(DraftSize, "step_ms", lambda *_: None)  # no rest
    drafted = accepted = 0
    with closing(HeadlessEngine()) as headless:
        headless.do(LoadModel(LocalFile(model_file), SETTINGS))
        session_of(headless).loaded.model.vocab.ignore_eog()
        for name, rng in row.rounds("answers", n):
            asked = f"{rng.choice(ASKED).format(*rng.sample(THINGS, 2))} {name}"
            told, chats = list[tuple[int, ...]](), list[HeadlessChat]()
            for drafts in (False, True):
                headless.do(UsePolicy(CachePolicy(drafts=drafts)))
                chat = HeadlessChat(headless)
                stats = chat.answer(asked, GREEDY).stats
                told.append(tuple(chat.messages[-1].tokens))
                chats.append(chat)  # the second one shares the prompt
                guess(monkeypatch, told[0], rng.choice(WRONG))
            assert told[0] == told[1], asked
            assert stats.drafted_tokens, f"{asked} had no guesses"
            assert stats.cells_used == stats.high_water, f"{asked} left holes"
            for chat in chats:
                headless.do(CloseConversation(chat.id))
            drafted, accepted = drafted + stats.drafted_tokens, accepted + stats.accepted_tokens
        (audited,) = (event for event in headless.do(AuditCache()) if isinstance(event, Audited))
        assert audited.state == "verified", audited.sentence
        row.say(f"{accepted:,} of {drafted:,} guessed tokens were right")
    assert 0 < accepted < drafted
