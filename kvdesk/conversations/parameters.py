"""What a user chooses for one conversation beside its messages: system prompt, sampling, chat template,
how its answers think.
"""

from __future__ import annotations

from kvdesk.chat import Conversation
from kvdesk.settings import Sampling, Settings
from kvdesk.thinking import AS_USUAL, Thinking
from kvdesk.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class Parameters:
    """They count from the next answer on. Each as in `Conversation`: `sampling` None is as the settings say, `template`
    "" is the model's own.
    """

    system_prompt: str = ""
    sampling: Sampling | None = None
    template: str = ""
    thinking: Thinking = AS_USUAL

    @staticmethod
    def of(conversation: Conversation) -> Parameters:
        """Those of a conversation."""
        c = conversation
        return Parameters(c.system_prompt, c.sampling, c.template, c.thinking)

    @staticmethod
    def default(settings: Settings) -> Parameters:
        """Those that a new conversation begins with."""
        return Parameters(settings.system_prompt)

    def put_into(self, conversation: Conversation) -> Conversation:
        """The conversation with these."""
        return replace(
            conversation,
            system_prompt=self.system_prompt,
            sampling=self.sampling,
            template=self.template,
            thinking=self.thinking,
        )

    def own_sampling(self, settings: Settings) -> tuple[str, ...]:
        """Names of the fields of `Sampling` that differ from those of the settings."""
        if self.sampling is None:
            return ()
        own, general = self.sampling, settings.sampling
        return tuple(name for name in Sampling.model_fields if getattr(own, name) != getattr(general, name))
