"""Messages as plain values, and as a model reads them. Knows no Qt, no engine, no database, and imports little: the
process of a chat template starts with this, and the first answer waits for it.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NewType

from kvdesk.loose_json import object_in
from kvdesk.reasoning import ReasoningMarks
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass, replace

ConversationId = NewType("ConversationId", str)
MessageId = NewType("MessageId", str)
Role = Literal["system", "user", "assistant", "tool"]
FEW_TOKENS = 8
"""Fewer tokens at once are computed much as single ones are: their speed is not that at which prompts are read."""
NO_RESULT = "The call was ended before it had a result."
"""What a model reads where a call was stopped, or kvdesk ended meanwhile. English, as all that a model reads."""
_FENCES = re.compile("`{3,}")
MessageState = Literal["streaming", "complete", "stopped", "interrupted", "failed"]
FinishReason = Literal["", "end", "limit", "stop string", "context full", "stopped", "interrupted", "failed", "edited"]
"""Why an answer ended: the model ended it, its length limit, a stop string (`Sampling.stop`), a full context, a user,
a crash or another model, an error; "edited": a user wrote its end. "" if it has not ended, or where that was not
kept (`finish_of` then tells).
"""
_FIELDS: Mapping[str, type] = {"tool_calls": list, "content": str, "tool_call_id": str, "name": str}
AttachmentKind = Literal["text", "pdf", "docx", "pasted"]


def new_conversation_id() -> ConversationId:
    return ConversationId(uuid.uuid4().hex)


def new_message_id() -> MessageId:
    return MessageId(uuid.uuid4().hex)


def system_message(conversation: ConversationId) -> MessageId:
    """The id of a conversation's system prompt as a message: the same in every turn."""
    return MessageId(f"{conversation}:system")


def storable(text: str) -> str:
    """Text that UTF-8 can hold: halves of a surrogate pair are joined, lone ones become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


@dataclass(frozen=True, slots=True)
class TurnStats:
    """What one answer cost. Times in milliseconds, speeds in tokens per second; 0.0 if nothing was measured.

    `why` says in words why so much was prefilled and not more or less, `time_why` why the first token came when it did;
    `vocab` is the fingerprint of the vocabulary
    that the answer's token ids belong to. Of an answer that was continued all is that of the last request; the
    `earlier_` ones are what those before it took, to be added. With `seed` as the sampler's seed the same prompt gets
    the same answer; -1: nothing was left to chance, or it is not known. `marks` are those around reasoning in the
    family of models that wrote the answer. Of a request of another program, `reread_tokens` of the prompt had been in
    the cache in the same order and were read again, for the cause `miss` (`kvdesk.cache.reuse.score`). Of the answer's
    tokens `accepted_tokens` were guessed before, out of `drafted_tokens` guesses that were computed; `draft_why` is a
    sentence on them, or why there were none. `put_tokens` of the prompt were documents' that had been read elsewhere
    (*Documents read once*): neither reused exactly nor prefilled.
    """

    prompt_tokens: int
    reused_tokens: int
    prefilled_tokens: int
    generated_tokens: int
    ttft_ms: float
    prefill_tok_s: float
    decode_tok_s: float
    seq_id: int = -1
    cells_used: int = 0
    high_water: int = 0
    n_kv: int = 0
    why: str = ""
    time_why: str = ""
    vocab: str = ""
    earlier_prefilled: int = 0
    earlier_generated: int = 0
    seed: int = -1
    marks: ReasoningMarks | None = None
    reread_tokens: int = 0
    miss: str = ""
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    draft_why: str = ""
    put_tokens: int = 0

    @property
    def all_prefilled(self) -> int:
        """Tokens that were computed of prompts, in all requests for this answer."""
        return self.earlier_prefilled + self.prefilled_tokens

    @property
    def all_generated(self) -> int:
        """Tokens that were generated in all requests for this answer."""
        return self.earlier_generated + self.generated_tokens

    def after(self, earlier: TurnStats | None) -> TurnStats:
        """These, of a request that continued the answer which took `earlier`."""
        if earlier is None:
            return self
        return replace(self, earlier_prefilled=earlier.all_prefilled, earlier_generated=earlier.all_generated)

    @property
    def reading_tok_s(self) -> float | None:
        """`prefill_tok_s` where it says how fast a prompt is read; None for one of fewer than `FEW_TOKENS`."""
        return self.prefill_tok_s if self.prefilled_tokens >= FEW_TOKENS and self.prefill_tok_s else None


NO_STATS: Final = TurnStats(0, 0, 0, 0, 0.0, 0.0, 0.0)
"""Of an answer that took nothing, or of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """The text of a file, or a long text that was pasted. The model reads it before the message it belongs to.

    note      what a user should know of how it was read, such as the encoding or that it is only a part; "" nothing
    n_tokens  as the model that it was sent to counted them; 0 if nobody did
    """

    name: str
    kind: AttachmentKind
    text: str
    note: str = ""
    n_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The call whose result a message of a tool is.

    server    that has the tool, by its name in the settings; "" if no server has it
    tool      its name, as the model wrote it
    arguments JSON text of an object, as the model wrote it
    ms        how long it ran; n_tokens: of the result where the model reads it, 0 while that is not known
    failed    the tool reported an error, or was not run
    """

    server: str
    tool: str
    arguments: str
    ms: int = 0
    n_tokens: int = 0
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `parent` is the message it follows, None for the first: edits make branches, not losses.

    `tokens` are the ids an answer was generated as, so that the next turn finds exactly them in the cache; of an answer
    that a user has edited, those before the edit, the first of which may still be true. Empty for messages that were
    typed. `model` is the name of the one that wrote an answer, "" if it is not known. `finish` is why an answer
    ended (`finish_of`); `pinned`: listed at the top of the chat, which keeps it in no context.
    `attachments` precede the text in what the model reads (`as_read`).
    `thought_ms` is how long its reasoning took; 0 if there was none, or it was not measured.
    `probabilities` are how likely its tokens were (`kvdesk.protocol.logprobs.unpack`); b"" if that was not kept.
    `fields` are further fields that a chat template sees of it, such as `tool_calls`, as a JSON object; "" none.
    `use`: of a message of a tool in a chat of kvdesk.
    """

    id: MessageId
    conversation: ConversationId
    parent: MessageId | None
    role: Role
    text: str
    state: MessageState = "complete"
    tokens: tuple[int, ...] = ()
    stats: TurnStats | None = None
    note: str = ""  # why it failed or was cut, as a sentence
    created_ms: int = 0  # Unix time
    model: str = ""
    attachments: tuple[Attachment, ...] = ()
    finish: FinishReason = ""
    pinned: bool = False
    thought_ms: int = 0
    fields: str = ""
    probabilities: bytes = b""
    use: ToolUse | None = None

    @property
    def marks(self) -> ReasoningMarks | None:
        """Around reasoning in the family that wrote this answer, if that is known."""
        return self.stats.marks if self.stats is not None else None


def known_fields(text: str) -> str:
    """Those of a message's `fields` that kvdesk itself writes; "" if there are none, or the text is damaged."""
    return fields_text({name: value for name, value in object_in(text).items() if _FIELDS.get(name) is type(value)})


def fields_of(message: Message) -> dict[str, Any]:
    """The `fields` of a message as an object."""
    return json.loads(message.fields) if message.fields else {}


def fields_text(fields: Mapping[str, Any]) -> str:
    """The object as `fields` of a message."""
    return json.dumps(fields, ensure_ascii=False) if fields else ""


def attachment_as_read(attachment: Attachment) -> str:
    """An attachment as the model reads it, always the same way, so that what the cache holds of it can be reused: its
    name, its text in a fence longer than any in it, an empty line.
    """
    fences = _FENCES.findall(attachment.text) if "```" in attachment.text else ()
    fence = "`" * (1 + max(map(len, fences), default=2))
    return f"{attachment.name}:\n{fence}\n{attachment.text}\n{fence}\n\n"


def text_in(attachment: Attachment) -> tuple[int, int]:
    """Where its own text begins and ends in `attachment_as_read`."""
    read = attachment_as_read(attachment)
    start = read.index("\n", len(attachment.name) + 2) + 1
    return start, start + len(attachment.text)


def attached_text(attachments: Sequence[Attachment]) -> str:
    """What precedes the text of a message in what the model reads."""
    return "".join(map(attachment_as_read, attachments))


def as_read(message: Message) -> Message:
    """The message as the model reads it: what is attached is a part of its text."""
    if not message.attachments:
        return message
    return replace(message, text=attached_text(message.attachments) + message.text, attachments=())


def history(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages a model is shown: user and assistant in turn, attachments in their texts, calls of tools with their
    results.

    A question whose answer failed is left out, since it would fail again; where an answer was stopped before it said
    anything, its question is joined with the next one. So are answers that follow one another, as imported chats may
    have them, or where a question was deleted: the ids of the first are true for the beginning.
    """
    shown: list[Message] = []
    for message in map(as_read, messages):
        previous = shown[-1] if shown else None
        if message.role == "assistant" and not message.text:
            if message.state == "failed" and previous is not None and previous.role == "user":
                shown.pop()
        elif message.role == "tool":
            shown.append(message if message.text else replace(message, text=NO_RESULT))
        elif previous is not None and previous.role == message.role:
            text = f"{previous.text}\n\n{message.text}"
            shown[-1] = replace(message, text=text, tokens=previous.tokens, stats=previous.stats, fields="")
        else:
            shown.append(message)
    return tuple(shown)


_FINISH_OF_STATE: Mapping[MessageState, FinishReason] = {
    "streaming": "",
    "complete": "end",
    "stopped": "stopped",
    "interrupted": "interrupted",
    "failed": "failed",
}


LIMIT_NOTE = marked("Ended at the limit of {n} tokens.")
"""Of an answer whose `finish` is "limit"."""


def is_limit_note(note: str) -> bool:
    """Whether the note of an answer says what its `finish` says too; it was written in English or in this language."""
    return note.startswith((LIMIT_NOTE.partition("{")[0], tr(LIMIT_NOTE).partition("{")[0]))


def finish_of(message: Message) -> FinishReason:
    """Why an answer ended; for one stored before reasons were, what its state and note say."""
    if message.finish or message.role != "assistant":
        return message.finish
    if message.state == "complete" and is_limit_note(message.note):
        return "limit"
    if message.state == "stopped" and message.note:
        return "context full" if "is full" in message.note else "interrupted"
    return _FINISH_OF_STATE[message.state]


def ended_early(message: Message) -> bool:
    """Whether an answer may have more to say: it has some text, and not the model ended it."""
    return message.role == "assistant" and bool(message.text) and finish_of(message) not in ("", "end")
