"""What is said of a chat's parameters, and of the cost of changing them."""

from kvdesk.conversations.parameters import Parameters
from kvdesk.message import ConversationId
from kvdesk.protocol.prompt import PromptPreview, PromptToken
from kvdesk.settings import Sampling, Settings
from kvdesk.ui.parameters.words import button_text, changes, cost, is_changed, template_prompt
from kvdesk.values import replace

SETTINGS = Settings(system_prompt="Be kind.", sampling=Sampling(temperature=0.5))
DEFAULT = Parameters.default(SETTINGS)
PREVIEW = PromptPreview(ConversationId("c"), 1, n_tokens=3_100, n_cached=12, n_again=2_988, again_ms=9_400.0)


def test_the_header_says_what_is_changed() -> None:
    assert (button_text(DEFAULT, SETTINGS), is_changed(DEFAULT, SETTINGS)) == ("Parameters", False)
    own = replace(DEFAULT, sampling=SETTINGS.sampling)
    assert not is_changed(own, SETTINGS), "own values that are those of the settings"
    changed = Parameters("", Sampling(temperature=1.25), "{{ x }}")
    assert button_text(changed, SETTINGS) == "Parameters: system prompt, Temperature 1.25, template"
    assert changes(changed, SETTINGS).split("\n") == ["No system prompt", "Temperature 1.25", "Its own chat template"]
    many = replace(DEFAULT, sampling=Sampling(temperature=0.1, top_k=1, seed=7))
    assert button_text(many, SETTINGS) == "Parameters: 3 values of sampling"
    assert changes(many, SETTINGS) == "Temperature 0.1\nTop K 1\nSeed 7"
    assert is_changed(many, SETTINGS)


def test_the_cost_is_said_in_tokens_and_seconds() -> None:
    other = replace(DEFAULT, system_prompt="Be brief.")
    said = "Prefilled again with the next answer: 2,988 tokens, about 9.4 s."
    assert cost(DEFAULT, other, PREVIEW) == (said, "warning")
    quick = replace(PREVIEW, n_again=3, again_ms=20.0)
    assert cost(DEFAULT, other, quick)[0] == "Prefilled again with the next answer: 3 tokens, less than 0.1 s."
    unmeasured = replace(PREVIEW, again_ms=None)
    assert cost(DEFAULT, other, unmeasured)[0] == "Prefilled again with the next answer: 2,988 tokens."
    assert cost(DEFAULT, other, replace(PREVIEW, n_again=0))[0].startswith("Nothing is prefilled again")
    assert cost(DEFAULT, other, None) == ("Counting the tokens …", "secondary")
    assert cost(DEFAULT, other, replace(PREVIEW, problem="It is broken in line 3.")) == (
        "It is broken in line 3.",
        "danger",
    )


def test_sampling_costs_nothing_and_says_so() -> None:
    said, tone = cost(DEFAULT, replace(DEFAULT, sampling=Sampling(top_k=1)), None)
    assert (said, tone) == ("Sampling is no part of the prompt: changing it costs nothing in the cache.", "good")


def test_without_a_change_the_size_of_the_prompt_is_said() -> None:
    assert cost(DEFAULT, DEFAULT, PREVIEW)[0] == "The prompt of this chat has 3,100 tokens, 12 of them in the cache."
    assert cost(DEFAULT, DEFAULT, None)[0] == ""


def template_says(*tokens: str) -> str:
    parts = tuple(PromptToken(n, text, text.startswith("<|")) for n, text in enumerate(tokens))
    return template_prompt(replace(PREVIEW, tokens=parts, n_head=len(parts)))


def test_the_system_prompt_of_a_template_is_known_from_the_prompt() -> None:
    chat_ml = ("<|im_start|>", "system", "\n", "You are", " kind.", "<|im_end|>", "\n", "<|im_start|>", "user", "\nHi")
    assert template_says(*chat_ml) == "You are kind."
    assert template_says(*chat_ml[7:], "<|im_end|>") == ""
    llama = (
        "<|begin|>",
        "<|start|>",
        "system",
        "<|end|>",
        "\n\nToday: Monday",
        "<|eot|>",
        "<|start|>",
        "user",
        "<|end|>",
    )
    assert template_says(*llama) == "Today: Monday"
    assert template_says("<|bos|>", "[INST] system\n", "x") == ""
    assert template_says() == ""
