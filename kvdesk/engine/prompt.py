"""Conversation to prompt tokens: the template renders, the vocabulary tokenizes, generated answers keep their ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kvdesk.chat import Message
from kvdesk.engine.templates import AnswerTokens, ChatTemplate, UserText
from kvdesk.engine.vocab import Vocab
from kvdesk.errors import PromptError


class PromptBuilder:
    """Turns messages into the token ids of a prompt that ends where the answer begins."""

    def __init__(self, vocab: Vocab, template_source: str) -> None:
        self._vocab = vocab
        self._template = ChatTemplate(
            template_source,
            bos_token=vocab.text_of(vocab.bos),
            eos_token=vocab.text_of(vocab.eos),
            control_tokens=vocab.control_texts,
        )

    def tokens(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of the whole conversation and the beginning of the next answer.

        Text of the template is parsed for special tokens, text of a person never is. An answer that was generated here
        is inserted as the ids it was generated as: tokenizing its text again could give others, and every
        difference is a prefix lost. Ids of another vocabulary mean nothing here: then the text is tokenized.

        Raises TemplateError, and PromptError where the model has no text tokenizer.
        """
        if not self._vocab.has_text:
            raise PromptError("This model has no text tokenizer, so it cannot chat; its cache can still be examined.")
        messages = [m if self._ours(m) else replace(m, tokens=()) for m in messages]
        answers = {m.id: m.tokens for m in messages if m.tokens}
        tokens: list[int] = []
        for segment in self._template.render(messages, add_generation_prompt=True):
            if isinstance(segment, AnswerTokens):
                tokens += answers[segment.message_id]
            else:
                special = not isinstance(segment, UserText)
                tokens += self._vocab.tokenize(segment.text, add_special=False, parse_special=special)
        if self._vocab.add_bos and tokens[:1] != [self._vocab.bos]:
            tokens.insert(0, self._vocab.bos)  # llama.cpp adds it once; many templates write it themselves
        return tokens

    def _ours(self, message: Message) -> bool:
        return message.stats is not None and message.stats.vocab == self._vocab.fingerprint


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many leading tokens the two have in common."""
    n = min(len(a), len(b))
    if a[:n] == b[:n]:
        return n
    return next(i for i in range(n) if a[i] != b[i])
