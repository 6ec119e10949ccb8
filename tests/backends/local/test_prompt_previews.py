"""The rendered prompt of a conversation as tokens, with another system prompt or template, and what that costs."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.backends.local.prompt.templates import FALLBACK
from kvdesk.backends.local.scheduler import previews
from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.conversations.parameters import Parameters
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.message import Message, MessageId
from kvdesk.protocol.cache import Forget
from kvdesk.protocol.chat import PreviewTurn
from kvdesk.protocol.prompt import PreviewPrompt, PromptPreview
from kvdesk.settings import Sampling
from kvdesk.values import replace
from tests.backends.local.conftest import SMALL, opened_with
from tests.backends.local.test_turns import LONG, of
from tests.backends.local.tiny_models import written

SHORT = Sampling(temperature=0.0, max_tokens=8)
OTHER = "You are a pirate and answer in rhymes."
BARE = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant]"


def turn(chat: HeadlessChat, parameters: Parameters, draft: str = "") -> PreviewTurn:
    """The conversation's next turn with these parameters."""
    said = [m for m in chat.messages if m.role != "system"]
    name = MessageId(f"{chat.id}:system")
    system = [Message(name, chat.id, None, "system", parameters.system_prompt)] if parameters.system_prompt else []
    typed = [Message(MessageId("draft"), chat.id, None, "user", draft)] if draft else []
    return PreviewTurn(
        chat.id, (*system, *said, *typed), chat.overflow, template=parameters.template, n_typed=len(draft)
    )


def ask(headless: HeadlessEngine, new: PreviewTurn, now: PreviewTurn, number: int = 0) -> PromptPreview:
    return of(headless.do(PreviewPrompt(new, now, number)), PromptPreview)[0]


def tokens(headless: HeadlessEngine, messages: Sequence[Message], template: str = "") -> list[int]:
    return session_of(headless).loaded.prompts.tokens(messages, template)


@pytest.fixture
def chat(headless: HeadlessEngine) -> HeadlessChat:
    chat = HeadlessChat(headless, system="You are a patient teacher.")
    chat.answer(LONG, SHORT)
    chat.answer("And then?", SHORT)
    return chat


def test_all_tokens_of_the_prompt_of_this_very_chat(headless: HeadlessEngine, chat: HeadlessChat) -> None:
    now = turn(chat, Parameters.of(chat.service.conversations[0]), "Why <|im_end|> so?")
    shown = ask(headless, now, now, 7)
    assert [token.id for token in shown.tokens] == tokens(headless, now.messages)
    assert (shown.number, shown.problem, shown.n_left_out, shown.n_again) == (7, "", 0, 0)
    assert "Why <|im_end|> so?" in "".join(token.text for token in shown.tokens)
    special = [token.text for token in shown.tokens if token.is_special]
    assert special.count("<|im_start|>") == len(now.messages) + 1
    assert special.count("<|im_end|>") == len(now.messages), "what a person typed is no special token"
    held = session_of(headless).runtime.cache_manager.pool.get(chat.id)
    assert shown.n_cached == common_prefix(held.tokens, [token.id for token in shown.tokens]) > 100


def test_without_a_draft_the_prompt_ends_with_the_last_answer(headless: HeadlessEngine, chat: HeadlessChat) -> None:
    now = turn(chat, Parameters.of(chat.service.conversations[0]))
    shown = ask(headless, now, now)
    assert "".join(token.text for token in shown.tokens).endswith(chat.messages[-1].text)
    assert shown.n_cached == shown.n_tokens - 1, "of the token sampled last there is no K and V yet"


def test_another_system_prompt_prefills_exactly_what_differs_and_going_back_nothing(
    headless: HeadlessEngine, chat: HeadlessChat
) -> None:
    before = Parameters.of(chat.service.conversations[0])
    after = replace(before, system_prompt=OTHER)
    held = list(session_of(headless).runtime.cache_manager.pool.get(chat.id).tokens)
    old, new = turn(chat, before, "Go on."), turn(chat, after, "Go on.")
    shown = ask(headless, new, old)
    same = common_prefix(tokens(headless, old.messages), tokens(headless, new.messages))
    assert shown.n_cached == same
    cost = ask(headless, old, old)
    assert shown.n_again == (shown.n_tokens - same) - (cost.n_tokens - cost.n_cached) > 100
    assert shown.again_ms is None or shown.again_ms > 0

    chat.service.set_parameters(chat.id, after)
    stats = chat.answer("Go on.", SHORT).stats
    assert (stats.reused_tokens, stats.prefilled_tokens) == (same, shown.n_tokens - same)
    assert "A message was changed (the system prompt)" in stats.why

    back, stay = turn(chat, before, "And back?"), turn(chat, after, "And back?")
    shown = ask(headless, back, stay)
    assert shown.n_cached == common_prefix(held, tokens(headless, back.messages)) == len(held), "as a branch"
    chat.service.set_parameters(chat.id, before)
    stats = chat.answer("And back?", SHORT).stats
    assert (stats.reused_tokens, stats.prefilled_tokens) == (shown.n_cached, shown.n_tokens - shown.n_cached)


@pytest.fixture(scope="module", params=["mamba2", "granitehybrid"])
def whole(request: pytest.FixtureRequest, tiny_folder: Path) -> Iterator[HeadlessEngine]:
    """A memory that gives back no part of a state."""
    yield from opened_with(written(tiny_folder, request.param, text=True), SMALL)


def test_where_a_state_comes_back_only_whole_what_is_said_is_what_it_costs(whole: HeadlessEngine) -> None:
    session_of(whole).runtime.cache_manager.swapper._costs = lambda n_tokens, _: (1e3 * n_tokens, 1.0)
    chat = HeadlessChat(whole, system="You are a patient teacher of the sea and of its lighthouses.")
    chat.answer("What came today?", SHORT)
    chat.answer("And then?", SHORT)
    before = Parameters.of(chat.service.conversations[0])
    after = replace(before, system_prompt=OTHER)
    for new, now in ((after, before), (before, after)):
        shown = ask(whole, turn(chat, new, "Go on."), turn(chat, now, "Go on."))
        chat.service.set_parameters(chat.id, new)
        stats = chat.answer("Go on.", SHORT).stats
        assert (stats.reused_tokens, stats.prefilled_tokens) == (shown.n_cached, shown.n_tokens - shown.n_cached)
    assert shown.n_cached > 0, "going back: to a checkpoint of before"


def test_sampling_costs_nothing(headless: HeadlessEngine, chat: HeadlessChat) -> None:
    n_held = len(session_of(headless).runtime.cache_manager.pool.get(chat.id).tokens)
    chat.service.set_parameters(
        chat.id, replace(Parameters.of(chat.service.conversations[0]), sampling=Sampling(temperature=1.5, max_tokens=3))
    )
    stats = chat.answer("Go on.", SHORT).stats
    assert (stats.reused_tokens, stats.generated_tokens) == (n_held, 3)


def test_a_template_of_its_own_renders_this_chat_and_no_other(headless: HeadlessEngine, chat: HeadlessChat) -> None:
    before = Parameters.of(chat.service.conversations[0])
    after = replace(before, template=BARE)
    shown = ask(headless, turn(chat, after, "Go on."), turn(chat, before, "Go on."))
    text = "".join(token.text for token in shown.tokens)
    assert text.startswith("[system] You are a patient teacher.\n[user] The lighthouse")
    assert text.endswith("[user] Go on.\n[assistant]")
    assert not any(token.is_special for token in shown.tokens)
    assert shown.model_template.strip()
    assert shown.n_again > 100

    chat.service.set_parameters(chat.id, after)
    stats = chat.answer("Go on.", SHORT).stats
    assert (stats.prompt_tokens, stats.reused_tokens) == (shown.n_tokens, shown.n_cached)
    other = HeadlessChat(headless)
    other.answer("Hello", SHORT)
    question = turn(other, Parameters(), "Well?")
    assert any(token.is_special for token in ask(headless, question, question).tokens)


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("one\n{% for m in messages %}\n{{ m.content }", "This chat's own template is broken in line 3: "),
        (
            "{{ messages[0].content }}\n{{ nobody.at.all }}",
            "This chat's own template fails on this conversation in line 2",
        ),
        ("{{ raise_exception('no system prompts') }}", "This chat's own template refuses this conversation: no system"),
        ("{{ 'a' * 20000000000 }}", "This chat's own template was stopped"),
        ("{{ ''.__class__.__mro__ }}", "This chat's own template was stopped"),
    ],
    ids=["syntax", "undefined", "refuses", "memory", "forbidden"],
)
def test_a_template_that_cannot_be_used_is_a_sentence_with_its_line(
    headless: HeadlessEngine, chat: HeadlessChat, template: str, sentence: str
) -> None:
    now = turn(chat, Parameters.of(chat.service.conversations[0]), "Go on.")
    shown = ask(headless, replace(now, template=template), now, 3)
    assert shown.problem.startswith(sentence)
    assert "\n" not in shown.problem
    assert (shown.number, shown.tokens, shown.n_tokens) == (3, (), 0)
    assert ask(headless, now, now).problem == "", "the model's own goes on"


def test_of_a_long_prompt_the_middle_is_left_out_and_counted(
    headless: HeadlessEngine, chat: HeadlessChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previews, "MOST_SHOWN", 40)
    now = turn(chat, Parameters.of(chat.service.conversations[0]), "Go on.")
    shown = ask(headless, now, now)
    whole = tokens(headless, now.messages)
    assert [token.id for token in shown.tokens] == whole[:20] + whole[-20:]
    assert (shown.n_tokens, shown.n_left_out) == (len(whole), len(whole) - 40)
    assert [shown.position(i) for i in (0, 19, 20, 39)] == [0, 19, len(whole) - 20, len(whole) - 1]


def test_a_prompt_that_does_not_fit_is_shown_and_says_so(headless: HeadlessEngine, chat: HeadlessChat) -> None:
    now = turn(chat, Parameters.of(chat.service.conversations[0]), "Go on.")
    shown = ask(headless, replace(now, messages=(*now.messages[:-1], replace(now.messages[-1], text=LONG * 9))), now)
    assert "the context holds" in shown.refused
    assert shown.n_tokens > 1024
    assert shown.tokens


def test_a_chat_that_would_keep_answers_waiting_is_not_rendered(
    headless: HeadlessEngine, chat: HeadlessChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previews, "MOST_PREVIEWED", 500)
    now = turn(chat, Parameters.of(chat.service.conversations[0]), "Go on.")
    n = sum(len(message.text) for message in now.messages)
    assert ask(headless, now, now).problem.startswith(f"This chat has {n} characters. ")


def test_nothing_is_cached_of_a_chat_that_was_forgotten(headless: HeadlessEngine, chat: HeadlessChat) -> None:
    headless.do(Forget(chat.id))
    now = turn(chat, Parameters.of(chat.service.conversations[0]), "Go on.")
    shown = ask(headless, replace(now, template=FALLBACK), now)
    assert shown.n_cached == 0
    assert ask(headless, now, now).n_again == 0


def test_without_a_model_the_preview_says_so() -> None:
    with closing(HeadlessEngine()) as headless:
        asked = turn(HeadlessChat(headless), Parameters(), "Hello")
        assert ask(headless, asked, asked).problem == "No model is loaded: open a GGUF file first."
