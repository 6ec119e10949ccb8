"""The chain is the one llama.cpp's programs make; nothing that can be chosen ends the process."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvdesk.backends.local.llama.binding import lib
from kvdesk.backends.local.llama.samplers.grammar_sampler import GrammarSampler, sampler_of
from kvdesk.backends.local.llama.samplers.sampler import CANDIDATE, Sampler, apply_to, plan_sampling
from kvdesk.backends.local.llama.vocab import Vocab
from kvdesk.errors import PromptError, UserError
from kvdesk.grammar.state import checked
from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.settings import Mirostat, SamplerName, Sampling

ALL = Sampling(
    repeat_penalty=1.1,
    dry_multiplier=0.8,
    top_n_sigma=2.0,
    typical_p=0.9,
    xtc_probability=0.5,
    dynatemp_range=0.3,
    logit_bias=((5, 1.0),),
)


@pytest.fixture
def vocab(headless: HeadlessEngine) -> Vocab:
    return headless.engine.session.loaded.model.vocab


def names(sampling: Sampling, vocab: Vocab) -> list[str]:
    sampler = sampler_of(plan_sampling(sampling, vocab), vocab)
    chain = sampler._chain
    found = [lib.llama_sampler_chain_get(chain, i) for i in range(lib.llama_sampler_chain_n(chain))]
    result = [lib.llama_sampler_name(part).decode() for part in found]
    sampler.close()
    return result


def test_with_the_defaults_the_chain_has_nothing_that_does_nothing(vocab: Vocab) -> None:
    assert names(Sampling(), vocab) == ["top-k", "top-p", "min-p", "temp", "dist"]
    assert names(Sampling(temperature=0.0), vocab) == ["greedy"]
    assert plan_sampling(Sampling(), vocab).looks_back == 0


def test_the_likeliest_token_is_the_one_that_llama_cpp_takes(headless: HeadlessEngine, vocab: Vocab) -> None:
    HeadlessChat(headless).answer("Hello", Sampling(max_tokens=2))
    context = headless.engine.session.runtime.context
    ctx, row = context._ctx, max(context.memory.rows)
    logits = np.ctypeslib.as_array(lib.llama_get_logits_ith(ctx, row), shape=(vocab.n_tokens,))
    sampler = sampler_of(plan_sampling(Sampling(temperature=0.0), vocab), vocab)
    for likeliest in ([vocab.n_tokens - 1], [7, 300], range(vocab.n_tokens)):
        logits[:] = -1.0
        logits[likeliest] = 2.0
        assert context.sample(sampler) == likeliest[0] == lib.llama_sampler_sample(sampler._chain, ctx, row)
    sampler.close()


def test_the_order_is_llama_cpps_and_can_be_changed(vocab: Vocab) -> None:
    in_order = [
        "logit-bias",
        "penalties",
        "dry",
        "top-n-sigma",
        "top-k",
        "typical",
        "top-p",
        "min-p",
        "xtc",
        "temp-ext",
    ]
    assert names(ALL, vocab) == [*in_order, "dist"]
    other = (SamplerName.TEMPERATURE, SamplerName.XTC, SamplerName.TOP_K)
    assert names(ALL.model_copy(update={"samplers": other}), vocab) == [
        "logit-bias",
        "temp-ext",
        "xtc",
        "top-k",
        "dist",
    ]
    assert names(ALL.model_copy(update={"adaptive_target": 0.5}), vocab)[-1] == "adaptive-p"
    for mirostat, name in ((Mirostat.V1, "mirostat"), (Mirostat.V2, "mirostat-v2")):
        assert names(ALL.model_copy(update={"mirostat": mirostat}), vocab) == ["logit-bias", "temp", name]


def test_at_temperature_0_what_can_leave_out_the_likeliest_token_stays(vocab: Vocab) -> None:
    greedy = ALL.model_copy(update={"temperature": 0.0, "dynatemp_range": 0.0})
    assert names(greedy, vocab) == ["logit-bias", "penalties", "dry", "typical", "xtc", "greedy"]


def test_as_much_of_the_prompt_is_shown_as_the_samplers_look_back(vocab: Vocab) -> None:
    def back(**changed: Any) -> int:
        return plan_sampling(Sampling(**changed), vocab).looks_back

    assert back(presence_penalty=0.5, repeat_last_n=30) == 30
    assert back(presence_penalty=0.5, repeat_last_n=30, dry_multiplier=1.0, dry_penalty_last_n=200) == 200
    assert back(repeat_penalty=1.2, samplers=(SamplerName.TOP_K,)) == 0
    assert back(repeat_penalty=1.2, mirostat=Mirostat.V2) == 0


def test_a_bias_on_a_text_counts_for_its_tokens_and_ids_are_checked(vocab: Vocab) -> None:
    tokens = set(vocab.tokenize(" hello world", add_special=False, parse_special=False))
    plan = plan_sampling(Sampling(logit_bias=((" hello world", -2.0), (min(tokens), 1.0))), vocab)
    assert dict(plan.biases) == {token: -1.0 if token == min(tokens) else -2.0 for token in tokens}
    for token in (vocab.n_tokens, 2**40, -1):
        with pytest.raises(PromptError, match="this model has 49,152 tokens"):
            plan_sampling(Sampling(logit_bias=((token, 1.0),)), vocab)


def test_a_grammar_and_a_schema_exclude_each_other(vocab: Vocab) -> None:
    with pytest.raises(PromptError, match="only one"):
        plan_sampling(Sampling(grammar='root ::= "a"', json_schema="{}"), vocab)


def samplings() -> st.SearchStrategy[Sampling]:
    """Any values in their ranges, the ends of them often."""
    fields: dict[str, st.SearchStrategy[Any]] = {
        "samplers": st.permutations(tuple(SamplerName)).flatmap(
            lambda order: st.integers(0, len(order)).map(lambda n: tuple(order[:n]))
        ),
        "mirostat": st.sampled_from(Mirostat),
        "dry_sequence_breakers": st.lists(st.sampled_from(["\n", "ü", "🙂🙂", " the", "x" * 40]), max_size=2).map(
            tuple
        ),
        "logit_bias": st.lists(
            st.tuples(st.integers(0, 49_151) | st.just(" hello"), st.sampled_from([-100.0, 0.0, 100.0])), max_size=3
        ).map(tuple),
    }
    for name, info in Sampling.model_fields.items():
        if info.annotation in (int, float):
            low = next(limit.ge for limit in info.metadata if hasattr(limit, "ge"))
            high = next(limit.le for limit in info.metadata if hasattr(limit, "le"))
            inside = st.floats(low, high) if info.annotation is float else st.integers(low, high)
            fields[name] = st.sampled_from([low, high, info.default]) | inside
    return st.fixed_dictionaries({}, optional=fields).map(lambda chosen: Sampling(**chosen))


def chosen(sampler: Sampler, logits: np.ndarray[Any, Any]) -> int:
    """What the chain chooses from these logits; it remembers that."""
    candidates = np.zeros(len(logits), CANDIDATE)
    candidates["id"], candidates["logit"] = np.arange(len(logits)), logits
    array = apply_to(sampler._chain, candidates)
    assert 0 <= array.selected < array.size
    token = int(array.data[array.selected].id)
    sampler.accept([token])
    return token


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sampling=samplings(), scale=st.sampled_from([0.0, 1.0, 1e4]), holes=st.booleans())
def test_no_choice_of_samplers_ends_the_process_and_a_seed_repeats(
    vocab: Vocab, sampling: Sampling, scale: float, holes: bool
) -> None:
    sampling = sampling.model_copy(update={"seed": 7})
    logits = (np.random.default_rng(3).normal(size=vocab.n_tokens) * scale).astype(np.float32)
    if holes:
        logits[1:] = -np.inf
    plan = plan_sampling(sampling, vocab)
    runs = []
    for _ in range(2):
        sampler = sampler_of(plan, vocab)
        sampler.accept([1, 2, 3, 1, 2])
        runs.append([chosen(sampler, logits) for _ in range(4)])
        sampler.close()
    assert runs[0] == runs[1]
    assert all(0 <= token < vocab.n_tokens for token in runs[0])


GRAMMARS = st.lists(
    st.sampled_from(
        ['"a"', '" the"', "[b-z]", ".", "(", ")", "|", "*", "+", "?", "{2,3}", "x", "<[5]>", "!<[5]>", '"ü"']
    ),
    min_size=1,
    max_size=8,
).map(lambda parts: "root ::= " + " ".join(parts) + '\nx ::= "q" x | ""')


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=GRAMMARS, seed=st.integers(0, 2**20))
def test_what_python_allows_llama_cpp_takes(vocab: Vocab, text: str, seed: int) -> None:
    """A random walk through the grammar: a token that ours allows and llama.cpp's does not would end this process."""
    try:
        grammar = checked(text)
    except UserError:
        return
    plan = plan_sampling(Sampling(grammar=text), vocab)
    sampler = GrammarSampler(plan, grammar, vocab)
    random = np.random.default_rng(seed)
    pieces = ["a", "b", "the", " the", "q", "qq", "ü", " ", "x"]
    tokens = [t for p in pieces for t in vocab.tokenize(p, add_special=False, parse_special=False)] + [5, vocab.eos]
    for _ in range(12):
        allowed = [(t, position) for t in tokens if (position := sampler._after(t)) is not None and not vocab.is_eog(t)]
        if not allowed:
            break
        token, sampler._state.position = allowed[int(random.integers(len(allowed)))]
        lib.llama_sampler_accept(sampler._grammar, token)
    sampler.close()


# --- whole answers ----------------------------------------------------------------------------------------------------


def answer(headless: HeadlessEngine, **sampling: Any) -> str:
    chat = HeadlessChat(headless)
    ended = chat.answer("Is the sky blue? Describe it as data.", Sampling(**{"seed": 5, "max_tokens": 80} | sampling))
    assert ended.state == "complete", ended.note
    return chat.messages[-1].text


def test_an_answer_follows_its_grammar_and_ends_with_it(headless: HeadlessEngine) -> None:
    assert answer(headless, grammar='root ::= "yes" | "no"') in ("yes", "no")
    assert answer(headless, grammar='root ::= "yes" | "no"', temperature=0.0) in ("yes", "no")
    assert answer(headless, grammar='root ::= "ü" [x-z]{3} "🙂"').startswith("ü")


def test_an_answer_is_what_its_schema_describes(headless: HeadlessEngine) -> None:
    schema = {
        "properties": {"colour": {"enum": ["blue", "grün"]}, "n": {"type": "integer"}},
        "required": ["colour", "n"],
    }
    found = json.loads(answer(headless, json_schema=json.dumps(schema)))
    assert found["colour"] in ("blue", "grün")
    assert isinstance(found["n"], int)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"title": "any"}, {"a": [1.5, None, "\n\u20ac🙂"], "b": {}}),
        ({"type": "string", "pattern": r"[^@\s]+@\w+\.\w{2,4}"}, 'to "a.b@cd.ef" now'),
        ({"properties": {"a": {"type": "integer", "minimum": -20, "maximum": 300}, "ab": True}}, {"a": -7, "ab": "x"}),
        ({"properties": {"n": {"$ref": "#"}}, "additionalProperties": {"format": "date"}}, {"n": {"x": "2026-01-02"}}),
        ({"prefixItems": [{"enum": ["é", 2]}, {"type": "number"}], "items": True, "maxItems": 90}, ["é", -1e5, [0]]),
    ],
    ids=str,
)
def test_llama_cpp_takes_the_grammar_of_a_schema(schema: dict[str, Any], value: object, vocab: Vocab) -> None:
    plan = plan_sampling(Sampling(json_schema=json.dumps(schema)), vocab)
    text = json.dumps(value, ensure_ascii=False)
    sampler = sampler_of(plan, vocab, [], vocab.tokenize(text, add_special=False, parse_special=False))
    assert isinstance(sampler, GrammarSampler)
    assert sampler._state.position.over
    sampler.close()
    with pytest.raises(PromptError, match="does not follow"):
        sampler_of(plan, vocab, [], vocab.tokenize(text + "}", add_special=False, parse_special=False))


@pytest.mark.parametrize(
    "sampling",
    [
        {},
        {"xtc_probability": 0.5, "typical_p": 0.9, "dry_multiplier": 0.8},
        {"mirostat": Mirostat.V1},
        {"mirostat": Mirostat.V2},
        {"adaptive_target": 0.3},
        {"grammar": "root ::= [a-z ]+"},
    ],
    ids=str,
)
def test_the_same_seed_gives_the_same_answer(headless: HeadlessEngine, sampling: dict[str, Any]) -> None:
    first = answer(headless, temperature=1.0, max_tokens=12, **sampling)
    assert answer(headless, temperature=1.0, max_tokens=12, **sampling) == first
    assert answer(headless, temperature=1.0, max_tokens=12, **sampling | {"seed": 6}) != first


def test_a_grammar_that_allows_no_token_ends_the_answer_with_a_sentence(headless: HeadlessEngine) -> None:
    chat = HeadlessChat(headless)
    ended = chat.answer("Hi", Sampling(grammar='root ::= "ab" <[99999999]>'))
    assert (ended.state, chat.messages[-1].text) == ("stopped", "ab")
    assert ended.note == "The grammar allows no token of this model here."
    assert chat.answer("Go on", Sampling(max_tokens=3)).state == "complete"


@pytest.mark.parametrize(
    "sampling",
    [
        {"grammar": "root ::= root"},
        {"grammar": "root ::= <no such token>"},
        {"json_schema": "{"},
        {"logit_bias": ((10**9, 1.0),)},
    ],
    ids=str,
)
def test_what_cannot_be_sampled_fails_with_a_sentence_before_anything_is_read(
    headless: HeadlessEngine, sampling: dict[str, Any]
) -> None:
    chat = HeadlessChat(headless)
    with pytest.raises(UserError) as refused:
        chat.answer("Hi", Sampling(**sampling))
    assert str(refused.value).endswith(".")
    assert headless.engine.session.runtime.context.memory.totals()[0] == 0
    assert chat.answer("Hi", Sampling(max_tokens=3)).state == "complete"


def test_an_answer_that_is_continued_goes_on_in_its_grammar(vocab: Vocab) -> None:
    plan = plan_sampling(Sampling(grammar='root ::= "yellow" | "no"'), vocab)
    begun = vocab.tokenize("yel", add_special=False, parse_special=False)
    sampler = sampler_of(plan, vocab, [1, 2, *begun], begun)
    assert isinstance(sampler, GrammarSampler)
    logits = np.zeros(vocab.n_tokens, np.float32)
    text = b""
    while not sampler._state.position.complete:
        token, position = sampler._chosen(logits)
        assert position is not None
        sampler._state.position = position
        lib.llama_sampler_accept(sampler._grammar, token)
        text += vocab.written(token)
    sampler.close()
    assert text == b"low"
    with pytest.raises(PromptError, match="does not follow the grammar"):
        sampler_of(plan, vocab, [], vocab.tokenize("other", add_special=False, parse_special=False))


def test_a_random_answer_can_be_had_again_by_its_seed(headless: HeadlessEngine) -> None:
    random = Sampling(temperature=1.0, max_tokens=16)
    chat = HeadlessChat(headless)
    first = chat.answer("Name an animal.", random).stats.seed
    again = HeadlessChat(headless)
    assert again.answer("Name an animal.", random.model_copy(update={"seed": first})).stats.seed == first
    assert again.messages[-1].text == chat.messages[-1].text
    assert HeadlessChat(headless).answer("Name an animal.", random).stats.seed != first
    assert HeadlessChat(headless).answer("Hi", Sampling(temperature=0.0, max_tokens=2)).stats.seed == -1
