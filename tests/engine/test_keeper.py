"""What is shared, forked, swapped and brought back: the text is token for token that of a fresh prefill.

On the embedded model with whole turns, and on a tiny model of every kind of memory with token ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kvdesk.cache.batch import Batch
from kvdesk.chat import ConversationId
from kvdesk.engine.chronicle import Chronicle
from kvdesk.engine.context import Context
from kvdesk.engine.keeper import Keeper
from kvdesk.engine.model import Model
from kvdesk.engine.sequences import Sequence
from kvdesk.engine.snapshots import Snapshots
from kvdesk.engine.swapper import Swapper
from kvdesk.lab.talk import Headless, Talk
from kvdesk.messages import Event, LoadModel, UsePolicy
from kvdesk.operations import Operate, SwapIn, SwapOut
from kvdesk.policy.swap import Limits, StateKind
from kvdesk.settings import CachePolicy, CacheType, ContextSettings, Sampling
from tests.cache.models import KINDS, write_model
from tests.engine.conftest import SMALL
from tests.engine.test_turns import fresh_answer, held
from tests.engine.tiny_models import write

GREEDY = Sampling(temperature=0.0, max_tokens=24)  # as `fresh_answer` has it
SYSTEM = "You are the keeper of a lighthouse, and you write down what the sea brings: " + "a rope, a shoe, " * 9
SHARED = Path(__file__).resolve().parents[3] / "shared" / "models"
TINY = ("mamba2", "gpt2", "qwen2vl")
DENSE = ("llama", "qwen2", "gemma3", "lfm2", "mamba", "gpt2", "qwen2vl")
FILES = (*(f"{name}-dense" for name in DENSE), "gpt-oss-moe")


# --- whole turns on the embedded model --------------------------------------------------------------------------------


def audited(headless: Headless) -> None:
    verification = headless.engine.session.context.audit(whole=True)
    assert verification.state == "verified", verification.detail


def used(headless: Headless) -> int:
    return headless.engine.session.context.totals()[0]


def test_a_shared_system_prompt_is_computed_once(headless: Headless) -> None:
    first, second = Talk(headless, SYSTEM), Talk(headless, SYSTEM)
    one = first.answer("What came today?", GREEDY).stats
    before = used(headless)
    two = second.answer("Who are you?", GREEDY).stats
    own = len(held(headless, second)) - two.reused_tokens
    assert one.reused_tokens == 0
    assert two.reused_tokens > 50
    assert two.prefilled_tokens == two.prompt_tokens - two.reused_tokens < 20
    assert used(headless) - before == own
    assert fresh_answer(headless, second.messages[:-1]) == second.messages[-1].tokens
    audited(headless)


def test_a_fork_shares_and_its_branches_come_back(headless: Headless) -> None:
    """A question is asked otherwise, then the first branch is gone on with: none of it is computed again."""
    talk = Talk(headless, "You are brief.")
    for prompt in ("Name a river.", "Name a town at a river, and tell me something about it."):
        talk.answer(prompt, GREEDY)
    first = list(talk.messages)
    talk.messages = talk.messages[:-2]
    before = used(headless)
    stats = talk.answer("Name a mountain.", GREEDY).stats
    assert used(headless) - before == len(held(headless, talk)) - stats.reused_tokens, "0 cells copied"
    assert len(headless.engine.session.pool.parked(talk.id)) == 1
    assert fresh_answer(headless, talk.messages[:-1]) == talk.messages[-1].tokens
    talk.messages = list(first)
    back = talk.answer("And another one?", GREEDY).stats
    assert back.reused_tokens >= first[-1].stats.prompt_tokens + first[-1].stats.generated_tokens - 1
    assert fresh_answer(headless, talk.messages[:-1]) == talk.messages[-1].tokens
    audited(headless)


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_out_and_back(headless: Headless, tmp_path: Path, where: str) -> None:
    policy = CachePolicy(memory_mb=512 if where == "memory" else 0)
    headless.do(UsePolicy(policy, tmp_path))
    try:
        talk = Talk(headless, SYSTEM)
        talk.answer("What came today?", GREEDY)
        tokens = list(held(headless, talk))
        headless.do(Operate(SwapOut(talk.id), measured=False))
        headless.engine.session.snapshots.close()
        assert used(headless) == 0
        assert len(list(tmp_path.glob("*.kvstate"))) == 1
        headless.do(Operate(SwapIn(talk.id), measured=False))
        assert held(headless, talk) == tokens
        headless.do(Operate(SwapOut(talk.id), measured=False))
        stats = talk.answer("And yesterday?", GREEDY).stats
        assert stats.reused_tokens == len(tokens)
        audited(headless)
        headless.do(UsePolicy(CachePolicy(), None))  # nothing is saved there
        assert fresh_answer(headless, talk.messages[:-1]) == talk.messages[-1].tokens
    finally:
        headless.do(UsePolicy(CachePolicy(), None))


def test_back_after_a_restart(model_file: Path, tmp_path: Path) -> None:
    talk, texts = None, []
    for prompt in ("What came today?", "And yesterday?"):
        headless = Headless()
        try:
            headless.do(UsePolicy(CachePolicy(), tmp_path))
            headless.do(LoadModel(model_file, SMALL))
            talk = talk or Talk(headless, SYSTEM)
            talk.desk = headless
            texts.append(talk.answer(prompt, GREEDY).stats)
            audited(headless)
            if len(texts) == 2:
                headless.do(UsePolicy(CachePolicy(), None))  # nothing is saved there
                assert fresh_answer(headless, talk.messages[:-1]) == talk.messages[-1].tokens
        finally:
            headless.close()
    assert texts[1].reused_tokens >= texts[0].prompt_tokens + texts[0].generated_tokens - 1


# --- token ids on every kind of memory --------------------------------------------------------------------------------


class Ids:
    """A keeper on a model without text: answers to prompts of token ids, each the likeliest."""

    def __init__(self, model: Model, folder: Path, type_kv: CacheType, *, unified: bool = True) -> None:
        n_ctx = 384 if unified else 1024
        settings = ContextSettings(
            n_ctx=n_ctx, n_seq_max=4, n_batch=32, n_ubatch=8, n_threads=1, n_threads_batch=1,
            type_k=type_kv, type_v=type_kv, kv_unified=unified, swa_full=True,
        )  # fmt: skip
        self.context = Context(model, settings, proved=False)
        kind = StateKind("tiny", "now", type_kv, type_kv, True, (1.0, 1.0))
        chronicle = Chronicle(self.context, self._ignore)
        snapshots = Snapshots(folder, kind, Limits(1 << 24, 1 << 24))
        swapper = Swapper(self.context, chronicle, snapshots, lambda n_tokens, _: (1e3 * n_tokens, 1.0))
        self.keeper = Keeper(self.context, chronicle, swapper)

    def _ignore(self, event: Event) -> None: ...

    def lease(self, name: str) -> Sequence:
        return self.keeper.lease(ConversationId(name))

    def answer(self, name: str, prompt: list[int], n: int = 12) -> tuple[int, list[int]]:
        """(tokens that were there already, the answer)."""
        sequence = self.lease(name)
        reused = self.keeper.take_prefix(sequence, prompt)
        assert sequence.tokens == prompt[:reused]
        answer: list[int] = []
        while len(answer) < n:
            start = len(sequence.tokens)
            part = prompt[start : start + 32] if start < len(prompt) else [answer[-1]]
            last = start + len(part) >= len(prompt)
            output = [False] * (len(part) - 1) + [last]
            self.context.decode(Batch(part, range(start, start + len(part)), [(sequence.seq_id,)] * len(part), output))
            sequence.tokens += part
            if last:
                answer.append(int(np.argmax(self.context.logits())))
        return reused, answer

    def close(self) -> None:
        assert self.context.audit(whole=True).state in ("verified", "mirrored")
        self.keeper.save_all()
        self.context.close()


def prompt_of(first: int, n: int) -> list[int]:
    return [(first + 7 * i * i + 3 * i) % 100 + 5 for i in range(n)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tiny")


@pytest.fixture(scope="module", params=[*KINDS, *TINY, *FILES])
def tiny(request: pytest.FixtureRequest, folder: Path) -> Iterator[Model]:
    name = request.param
    path = SHARED / f"{name}.gguf" if name in FILES else folder / f"{name}.gguf"
    if name in KINDS:
        write_model(path, name)
    elif name in TINY:
        write(path, name)
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    model = Model(path)
    yield model
    model.close()


@pytest.mark.parametrize("type_kv", [CacheType.F16, CacheType.F32])
def test_every_memory_is_exact(tiny: Model, tmp_path: Path, type_kv: CacheType) -> None:
    """Sharing, going on, editing, regenerating, leaving and a restart: always the answer of a fresh start."""
    n = 16 if tiny.facts.architecture == "gpt2" else 44  # the written one has learned 64 positions
    begin = prompt_of(0, n)
    a, b = begin + prompt_of(50, 6), begin + prompt_of(71, 9)

    def fresh(prompt: list[int]) -> list[int]:
        ids = Ids(tiny, tmp_path / "none", type_kv)
        try:
            reused, answer = ids.answer("alone", prompt)
            assert reused == 0
            ids.keeper.forget(ConversationId("alone"), "")
            return answer
        finally:
            ids.close()

    ids = Ids(tiny, tmp_path / "states", type_kv)
    can = ids.context.can
    try:
        _, first = ids.answer("one", a)
        assert first == fresh(a)
        shared, second = ids.answer("two", b)  # the beginning is another conversation's
        assert second == fresh(b)
        edited, third = ids.answer("one", [*b[:-3], 9, 8, 7])
        assert third == fresh([*b[:-3], 9, 8, 7])
        if can("partial seq_cp") and can("partial seq_rm"):
            assert shared == n
            assert edited >= n
        _, again = ids.answer("one", a)  # the branch that was parked, or anew
        assert again == first
        longer = a + first[:-1] + prompt_of(90, 4)
        wanted = fresh(longer)
        if can("swap"):
            ids.keeper.swap_out(ids.lease("one"))
            kept, fourth = ids.answer("one", longer)
            assert kept == len(a) + len(first) - 1
        else:
            _, fourth = ids.answer("one", longer)
        assert fourth == wanted
    finally:
        ids.close()
    ids = Ids(tiny, tmp_path / "states", type_kv)  # as after a restart
    try:
        more = longer + fourth[:-1] + prompt_of(33, 3)
        kept, fifth = ids.answer("one", more)
        assert kept == (len(longer) + len(fourth) - 1 if can("swap") else 0)
    finally:
        ids.close()
    assert fifth == fresh(more)
