"""Reasoning that a client sends back keeps the token ids that are in the cache, with every chat template of llama.cpp's
`models/templates`: as far as the template writes what the model wrote.

KVDESK_TEMPLATES names the folder; without it, it is looked for in `../shared` beside the project.
"""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kvdesk.answer_reader import AnswerReader
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.llama.vocab import Vocab
from kvdesk.backends.local.prompt.prompt import Prompt, PromptBuilder
from kvdesk.backends.local.prompt.templates import ChatTemplate
from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.message import TurnStats, new_conversation_id
from kvdesk.server.request.conversation import GivenAnswer, GivenAnswers, chains, messages_of, with_tokens
from tests.backends.local.plain_template import BOS, EOS
from tests.backends.local.talking import write_talking
from tests.stress.test_templates import _CONTROLS, _FILES, _TOOLS

pytestmark = [pytest.mark.stress, pytest.mark.timeout(600)]
CONTROL, USER_DEFINED = 3, 4
THOUGHT: Final = "They want weather, so I think of the tool that tells it.\n\nThe city is Paris; nothing else is asked."
NEAR: Final = 2
"""Ids before the first other text that need not be kept: the tokenizer has no boundary there."""
ASKED: Final = {"role": "user", "content": "Weather in Paris?"}
BLANKS: Final = (("\n", "\n", "\n\n"), ("", "", ""), ("\n", "\n", "\n"), ("", "", "\n\n"), ("\n\n", "\n\n", "\n"))
"""Behind the mark that begins reasoning, before the one that ends it, and behind that."""


@pytest.fixture(scope="module", params=_FILES, ids=lambda file: file.stem)
def builder(
    request: pytest.FixtureRequest, model_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PromptBuilder]:
    source = request.param.read_text(encoding="utf-8")
    found = ChatTemplate(source, BOS, EOS).traits.marks
    texts = {*_CONTROLS.findall(source), *(found.texts if found is not None else ())}
    texts -= {"<|im_start|>", "<|im_end|>", "<|endoftext|>"}  # the embedded model has these
    marks = {text: CONTROL if "|" in text or "｜" in text else USER_DEFINED for text in texts}
    model = Model(write_talking(tmp_path_factory.mktemp("model") / "model.gguf", model_file, source, marks=marks))
    made = PromptBuilder(model.vocab, source)
    yield made
    made.close()
    model.close()


def oddly(vocab: Vocab, text: str, rng: random.Random) -> list[int]:
    """Ids of a text as no tokenizer gives them, but a model may."""
    found: list[int] = []
    for part in re.split(f"({'|'.join(map(re.escape, sorted(vocab.control_texts, key=len, reverse=True)))})", text):
        if part in vocab.control_texts:
            found += vocab.tokenize(part, add_special=False, parse_special=True)
            continue
        at = 0
        while at < len(part):
            n = rng.choice((1, 2, 3, 5, 9, 14))
            found += vocab.tokenize(part[at : at + n], add_special=False, parse_special=False)
            at += n
    return found


def given(vocab: Vocab, prompt: Prompt, ids: list[int]) -> tuple[GivenAnswer, dict[str, Any]]:
    """The answer as it is remembered, and as its client gets it."""
    reader = AnswerReader(_TOOLS if prompt.calls is not None else ())
    reader.begin(prompt.marks, prompt.calls)
    text = vocab.text(ids)
    reader.add(text)
    reader.end()
    stats = TurnStats(1, 0, 1, len(ids), 1.0, 1.0, 1.0, vocab=vocab.fingerprint, marks=prompt.marks)
    message: dict[str, Any] = {"role": "assistant", "content": reader.said or None}
    if reader.thought:
        message["reasoning_content"] = reader.thought
    if reader.calls:
        message["tool_calls"] = reader.calls_as_json()
    return GivenAnswer(text, tuple(ids), stats, reader.said, reader.calls, reader.thought), message


@pytest.mark.parametrize("calls", [True, False], ids=["tool", "chat"])
@pytest.mark.parametrize("blanks", BLANKS, ids=repr)
def test_what_the_template_writes_again_keeps_its_ids(
    builder: PromptBuilder, blanks: tuple[str, str, str], calls: bool
) -> None:
    vocab = builder._vocab
    marks = builder.traits().marks
    if marks is None:
        pytest.skip("the family does not reason")
    tools = json.dumps(_TOOLS) if calls else ""
    conversation, known = new_conversation_id(), GivenAnswers()
    first = messages_of([ASKED], conversation)
    asked = builder.prompt(first, tools=tools)
    begin, end, behind = blanks
    said = f"{marks.answer}It is warm.{marks.after}"
    if calls:
        said = asked.calls.written([("get_weather", {"city": "Paris"})])
    start = "" if asked.marks.is_open else marks.start
    ids = oddly(vocab, f"{start}{begin}{THOUGHT}{end}{marks.end}{behind}{said}", random.Random(repr(blanks)))
    answer, message = given(vocab, asked, ids)
    assert answer.thought == THOUGHT
    assert bool(answer.calls) == calls
    *_, chain = chains(first, tools, "")
    known.add(chain, answer)
    last = {"role": "user", "content": "And now?"}
    if calls:
        identity = message["tool_calls"][0]["id"]
        last = {"role": "tool", "tool_call_id": identity, "name": "get_weather", "content": "18 C"}
    history = messages_of([ASKED, message, last], conversation)
    again = builder.prompt(with_tokens(history, known, tools, ""), tools=tools)
    cached = [*asked.tokens, *ids]
    kept, wanted = common_prefix(cached, again.tokens), most(vocab, cached, again.tokens)
    held, found = (written(vocab, tokens[kept:])[:60] for tokens in (cached, again.tokens))
    assert kept >= wanted - NEAR, f"{kept} of {wanted} kept ({len(asked.tokens)} asked): {held!r} became {found!r}"


def written(vocab: Vocab, tokens: list[int]) -> bytes:
    return b"".join(map(vocab.written, tokens))


def most(vocab: Vocab, cached: list[int], tokens: list[int]) -> int:
    """Cached ids whose text the prompt begins with."""
    same = common_prefix(written(vocab, cached), written(vocab, tokens))
    n = 0
    for token in cached:
        same -= len(vocab.written(token))
        if same < 0:
            break
        n += 1
    return n
