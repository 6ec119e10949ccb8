"""Turns a conversation into prompt tokens. The template renders, the vocabulary tokenizes, answers keep their ids."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial

from kvdesk.backends.local.llama.vocab import Vocab
from kvdesk.backends.local.prompt.rendering import Rendering
from kvdesk.backends.local.prompt.template_errors import CHATS_OWN, MODELS_OWN
from kvdesk.backends.local.prompt.template_process import TemplateProcess
from kvdesk.backends.local.prompt.template_traits import TemplateTraits
from kvdesk.backends.local.prompt.templates import FALLBACK
from kvdesk.backends.local.prompt.text_ids import RenderingTokenizer, ends_in, plain_tokens
from kvdesk.call_format import CallFormat
from kvdesk.errors import NO_TOKENIZER, PromptError
from kvdesk.message import Message, MessageId
from kvdesk.protocol.chat import RawPrompt
from kvdesk.reasoning import TOKENS, ReasoningMarks, parts_of
from kvdesk.translation import tr
from kvdesk.values import dataclass, replace

ANSWERS_KNOWN = 1000
"""Answers whose ids were compared with their text are remembered, because a preview asks at every keystroke."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message's own text lies in a prompt: tokens `[first, end)`.

    `char_ends[i]`: characters of the message's text, outer white space included, complete after token `first + i`.
    """

    message: MessageId
    first: int
    end: int
    char_ends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """The token ids of a prompt, and where the messages lie in it, in order. `remark`: as in `Rendering`; `text`: the
    chat template's output, without the beginning-of-sequence token that llama.cpp adds.
    """

    tokens: list[int]
    places: tuple[Place, ...]
    remark: str = ""
    marks: ReasoningMarks | None = None  # the template's marks around the reasoning of the answer
    calls: CallFormat | None = None  # how the answer calls tools, if it may
    text: str = ""


class PromptBuilder:
    """Turns messages into the token ids of a prompt that ends where the answer begins. `close` it.

    Every method accepts a chat template to use instead of the model's; "" is the model's. One process renders with all
    others, another with the model's, so that no other template can end that process.
    """

    def __init__(self, vocab: Vocab, template_source: str) -> None:
        self._vocab = vocab
        self._tokenizer = RenderingTokenizer(vocab)
        self.model_template = template_source if template_source.strip() else FALLBACK
        self._template = self._process(template_source, tr(MODELS_OWN))
        self._others: TemplateProcess | None = None
        self._ids_of = lru_cache(ANSWERS_KNOWN)(partial(ids_of_text, vocab))

    def close(self) -> None:
        """End the processes that render."""
        self._template.close()
        if self._others is not None:
            self._others.close()

    def begin(self) -> None:
        """Start the process for other templates than the model's, without waiting for it."""
        if self._others is None:
            self._others = self._process("", tr(CHATS_OWN))

    def tokens(self, messages: Sequence[Message], template: str = "") -> list[int]:
        """Token ids of the whole conversation and the beginning of the next answer: `prompt` without the places."""
        return self._tokens(messages, template)[1]

    def prompt(
        self,
        messages: Sequence[Message],
        template: str = "",
        tools: str = "",
        variables: str = "",
        *,
        begins: bool = True,
    ) -> Prompt:
        """Token ids of the whole conversation and the beginning of the next answer (`begins`). `tools`, `variables`: as
        in `Generate`.

        Marks that the template wrote become special tokens; other text never does (`text_ids`). An answer generated
        here is inserted with its generated ids. Tokenizing its text could give others, which would shorten the reusable
        prefix. An edited answer keeps the ids before the edit (`ids_of_text`). Ids of another vocabulary are not used;
        that text is tokenized.

        Raises TemplateError, and PromptError if the model has no text tokenizer.
        """
        rendering, tokens, ends = self._tokens(messages, template, tools, variables, begins=begins)
        texts = {m.id: m.text for m in messages}
        places = []
        for span, message in rendering.places:
            if message not in texts:
                continue  # kvdesk's own message that describes tools
            first, end = bisect_right(ends, span.start), bisect_left(ends, span.end) + 1
            lead = max(0, texts[message].rfind(rendering.text[span.start : span.end]))  # a folded system prompt: none
            chars = tuple(min(max(0, at - span.start), span.end - span.start) + lead for at in ends[first:end])
            places.append(Place(message, first, min(end, len(tokens)), chars))
        traits = self.traits(template)
        calls = traits.calls.without(self._vocab.ends) if tools else None
        marks = traits.marks
        if marks is not None:
            marks = replace(marks, is_open=rendering.text.rstrip().endswith(marks.start))
        text = rendering.text
        if self._vocab.add_bos:
            text = text.removeprefix(self._vocab.text_of(self._vocab.bos))
        return Prompt(tokens, tuple(places), rendering.remark, marks, calls, text)

    def traits(self, template: str = "") -> TemplateTraits:
        """The traits of the template's family."""
        found = self._renderer(template).traits
        marks = found.marks.texts if found.marks is not None else frozenset()
        if self._vocab.show(marks | (found.calls.texts - self._vocab.ends)):
            self._ids_of.cache_clear()
            self._tokenizer.forget()
        return found

    def raw_tokens(self, raw: RawPrompt) -> list[int]:
        """Ids of a prompt without a template, as in llama.cpp's server: a text begins with the beginning-of-sequence
        token if the model wants one. Raises PromptError.
        """
        if not self._vocab.has_text:
            raise PromptError(NO_TOKENIZER)
        tokens = list(raw.tokens) or self._vocab.tokenize(raw.text, add_special=True, parse_special=True)
        if not tokens:
            raise PromptError(tr("The prompt is empty."))
        wrong = next((token for token in tokens if not 0 <= token < self._vocab.n_tokens), None)
        if wrong is not None:
            raise PromptError(
                tr("The prompt has the token {token}, and this model has {n:,} tokens.").format(
                    token=wrong, n=self._vocab.n_tokens
                )
            )
        return tokens

    def read(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        """Ids of any text. Raises PromptError."""
        return self._vocab.tokenize(text, add_special=add_special, parse_special=parse_special)

    def written(self, tokens: Sequence[int]) -> list[bytes]:
        """The bytes of each token, with control tokens written out; empty for ids that do not exist."""
        return [self._vocab.written(token) for token in tokens]

    def answer_tokens(self, answer: Message, template: str = "") -> list[int]:
        """Ids of an answer to be continued, after the prompt that asked for it.

        The assistant's turn stays open as in llama.cpp's server (common/chat.cpp, `continue_final_message`): the
        messages before the answer are rendered with the generation prompt, and the answer follows unchanged. So no
        template can close, trim or rewrite it, and its tokens are those in the cache.

        Raises PromptError if the model has no text tokenizer.
        """
        if not self._vocab.has_text:
            raise PromptError(tr(NO_TOKENIZER))
        return list(self._generated(answer)) or text_tokens(
            self._vocab, answer.text, answer.marks or self.traits(template).marks
        )

    def _process(self, source: str, name: str) -> TemplateProcess:
        vocab = self._vocab
        bos, eos = vocab.text_of(vocab.bos), vocab.text_of(vocab.eos)
        return TemplateProcess(source, bos, eos, vocab.control_texts, name)

    def _renderer(self, template: str) -> TemplateProcess:
        if not template.strip():
            return self._template
        self.begin()
        assert self._others is not None
        self._others.use(template)
        return self._others

    def _tokens(
        self, messages: Sequence[Message], template: str, tools: str = "", variables: str = "", *, begins: bool = True
    ) -> tuple[Rendering, list[int], list[int]]:
        """The rendering, its tokens, and the number of its characters that are complete after each."""
        if not self._vocab.has_text:
            raise PromptError(tr(NO_TOKENIZER))
        self.traits(template)  # they decide which part of an answer is text
        messages = [replace(m, tokens=self._generated(m)) if m.tokens else m for m in messages]
        answers = {m.id: m.tokens for m in messages if m.tokens}
        rendering = self._renderer(template).rendering(
            messages, add_generation_prompt=begins, tools=tools, variables=variables
        )
        tokens, ends = self._tokenizer.tokens(rendering.segments, answers)
        if self._vocab.add_bos and tokens[:1] != [self._vocab.bos]:
            tokens.insert(0, self._vocab.bos)  # llama.cpp adds it once, and many templates write it
            ends.insert(0, 0)
        return rendering, tokens, ends

    def _generated(self, message: Message) -> tuple[int, ...]:
        """The ids of an answer that were generated here; () if none of them are valid here."""
        if message.stats is None or message.stats.vocab != self._vocab.fingerprint:
            return ()
        return self._ids_of(message.tokens, message.text, message.stats.marks)


def ids_of_text(
    vocab: Vocab, generated: tuple[int, ...], text: str, marks: ReasoningMarks | None = None
) -> tuple[int, ...]:
    """Ids of an answer's text: the generated ones. If it was edited, those before the change, and then those of the new
    text as a whole, from the first boundary that both share. () if no generated id remains.
    """
    ends = ends_in(vocab, generated, text)
    if len(ends) > len(generated):
        whole = vocab.text(generated)
        if text in (whole, whole[: max(ends)]):  # the last character may be incomplete
            return generated
    new = text_tokens(vocab, text, marks)
    starts = {end: i for i, end in reversed([*enumerate(ends_in(vocab, new, text))])}
    n = next((n for n in range(len(ends) - 1, 0, -1) if ends[n] > 0 and ends[n] in starts), 0)
    return (*generated[:n], *new[starts[ends[n]] :]) if n else ()


def text_tokens(vocab: Vocab, text: str, marks: ReasoningMarks | None = None) -> list[int]:
    """Ids of an answer's text after the prompt. Only the marks around reasoning become control tokens, because without
    them the model would not see where its reasoning ends. `marks`: those of its family.
    """
    tokens: list[int] = []
    for part, special in _marked_parts(vocab, text, marks):
        if special:
            tokens += vocab.tokenize(part, add_special=False, parse_special=True)
        elif part:
            tokens += plain_tokens(vocab, part, is_behind=True)
    return tokens


def _marked_parts(vocab: Vocab, text: str, marks: ReasoningMarks | None) -> Iterator[tuple[str, bool]]:
    """The text in pieces, and whether each is a mark around reasoning."""
    if marks is not None and (at := parts_of(text, marks)) is not None:
        pieces = (text[: at.thought], text[at.thought_end : at.said], text[at.said_end :])
        inner = (text[at.thought : at.thought_end], text[at.said : at.said_end], "")
        for mark, plain in zip(pieces, inner, strict=True):
            for part in re.split(r"(\s+)", mark):
                yield part, bool(part.strip())
            yield plain, False
        return
    found = [mark for mark in TOKENS & vocab.control_texts if mark in text]
    parts = re.split(f"({'|'.join(map(re.escape, found))})", text) if found else [text]
    yield from ((part, part in found) for part in parts)
