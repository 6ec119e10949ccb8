"""How the context of a conversation is divided between what is in it and what is about to come. Without Qt."""

from kvdesk.protocol.chat import ContextUse, TurnPreview
from kvdesk.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class ContextParts:
    """Tokens. `answer` is to be left for it; `is_estimate`: draft and attachments are not counted by the model yet."""

    n_ctx: int
    system: int = 0
    history: int = 0
    attachments: int = 0
    draft: int = 0
    answer: int = 0
    is_estimate: bool = False

    @property
    def used(self) -> int:
        """What is taken once the draft is sent, without the answer."""
        return self.system + self.history + self.attachments + self.draft

    @property
    def answer_room(self) -> int:
        """What there is for the answer; less than is to be left in a context that is almost full."""
        return min(self.answer, max(0, self.n_ctx - self.used))

    @property
    def free(self) -> int:
        return max(0, self.n_ctx - self.used - self.answer)


def parts_of_use(use: ContextUse) -> ContextParts:
    """Of a conversation without a draft."""
    system = min(use.n_system, use.n_tokens)
    return ContextParts(use.n_ctx, system, use.n_tokens - system, answer=use.n_answer)


def parts_of_preview(preview: TurnPreview) -> ContextParts:
    """Of a conversation with a draft that was counted, after what is removed for it."""
    attachments = sum(preview.n_attached)
    return ContextParts(
        preview.n_ctx,
        preview.n_system,
        max(0, preview.n_conversation - preview.n_system - preview.n_evicted_tokens),
        attachments,
        preview.n_draft - attachments,
        preview.n_answer,
    )


class DraftEstimate:
    """Tokens of a draft between two counts: that many a character as the last one that was counted had."""

    def __init__(self) -> None:
        self._per_character = 0.25  # as English prose has with most vocabularies

    def learn(self, preview: TurnPreview) -> None:
        """From a draft that is long enough to say something."""
        n_characters = len(preview.text) + sum(preview.attached_chars)
        if preview.n_draft >= 16 and n_characters:
            self._per_character = preview.n_draft / n_characters

    def parts(self, use: ContextUse, n_attached: int, n_typed: int) -> ContextParts:
        """Of a conversation with a draft of that many characters that are attached and typed."""
        found = parts_of_use(use)
        if not (n_attached or n_typed):
            return found
        attachments, draft = (round(n * self._per_character) for n in (n_attached, n_typed))
        return replace(found, attachments=attachments, draft=draft, is_estimate=True)
