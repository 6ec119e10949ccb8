"""Converts text to tokens and back for clients (`Tokenize`, `Detokenize`)."""

from kvdesk.backends.local.prompt.prompt import PromptBuilder
from kvdesk.errors import NO_TOKENIZER, UserError
from kvdesk.protocol.chat import Generate
from kvdesk.protocol.prompt import Detokenize, Tokenize, Tokenized


def tokenized(prompts: PromptBuilder | None, asked: Tokenize | Detokenize) -> Tokenized:
    """The answer. `prompts`: None without a model, or without a text tokenizer."""
    if prompts is None:
        return Tokenized(asked.number, problem=NO_TOKENIZER)
    try:
        if isinstance(asked, Tokenize) and asked.prompt is not None:
            return _of_prompt(prompts, asked, asked.prompt)
        if isinstance(asked, Tokenize):
            tokens = prompts.read(asked.text, add_special=asked.add_special, parse_special=asked.parse_special)
        else:
            tokens = list(asked.tokens)
    except UserError as error:
        return Tokenized(asked.number, problem=str(error))
    pieces = prompts.written(tokens)
    return Tokenized(asked.number, b"".join(pieces).decode("utf-8", "replace"), tuple(tokens), tuple(pieces))


def _of_prompt(prompts: PromptBuilder, asked: Tokenize, request: Generate) -> Tokenized:
    """The whole prompt, with the answer that it continues; its text is the chat template's output. Raises UserError."""
    if request.raw is not None:
        tokens = prompts.raw_tokens(request.raw)
        text = b"".join(prompts.written(tokens)).decode("utf-8", "replace")
    else:
        template = request.template
        prompt = prompts.prompt(request.messages, template, request.tools, request.variables, begins=asked.begins)
        tokens, text = prompt.tokens, prompt.text
        if request.continued is not None:
            tokens = [*tokens, *prompts.answer_tokens(request.continued, template)]
            text += request.continued.text
    return Tokenized(asked.number, text, tuple(tokens), tuple(prompts.written(tokens)))
