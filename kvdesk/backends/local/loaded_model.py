"""A loaded model: everything that stays the same for all contexts made from it.

Owns the engine's model, the header of its file and the processes that render its prompts. Must never know a context.
"""

import re
from typing import Final

from kvdesk.backends.local.llama.binding import engine_version
from kvdesk.backends.local.llama.open_model import OpenedModel
from kvdesk.backends.local.prompt.prompt import PromptBuilder
from kvdesk.backends.local.prompt.templates import CHATML_MARK
from kvdesk.backends.local.scheduler.speed_model import MeasuredCosts
from kvdesk.cache.compare import ROUNDING, ROUNDING_KL
from kvdesk.library.estimate import Estimate, available_bytes, check_fits
from kvdesk.library.fingerprint import fingerprint
from kvdesk.policies.swap import StateKind
from kvdesk.settings import ContextSettings
from kvdesk.translation import tr

_REASONS: Final = re.compile(r"reason|think|thought")


class LoadedModel:
    """A model that was opened.

    prompts           renders conversations; None if the model has no text tokenizer
    template_problem  why the file's own chat template is not used, "" if it is
    fingerprint       of the file: saved states of another file are useless here
    costs             measured so far, by the settings they depend on
    """

    def __init__(self, opened: OpenedModel) -> None:
        self.header, self.model = opened.header, opened.model
        self.fingerprint = fingerprint(opened.header.path)
        self.costs: MeasuredCosts = {}
        self.template_problem = ""
        if opened.template_problem:
            self.template_problem = tr(
                "The model's chat template cannot be used, so a plain one is: {template_problem}"
            ).format(template_problem=opened.template_problem)
        template = "" if self.template_problem else self.model.chat_template
        self.prompts = PromptBuilder(self.model.vocab, template) if self.model.vocab.has_text else None

    @property
    def remark(self) -> str:
        """What the user should know about the model's chat template; "" for nothing. A remark about reasoning waits
        until the template is compiled.
        """
        if self.prompts is not None and not self.model.chat_template and not self._knows_chatml:
            return tr(
                "This model has no chat template: it was probably not trained to chat, so its answers may make no "
                "sense. Models for chats are often called “instruct” or “it”."
            )
        if self.template_problem or self.prompts is None or not _REASONS.search(self.model.chat_template):
            return self.template_problem
        if not self.prompts.traits().is_unknown:
            return ""
        return tr("kvdesk does not know how this model marks its reasoning, so it is shown as part of the answer.")

    @property
    def _knows_chatml(self) -> bool:
        """Whether the mark of the template that is used instead is one token."""
        return len(self.model.vocab.tokenize(CHATML_MARK, add_special=False, parse_special=True)) == 1

    @property
    def noise(self) -> tuple[float, float]:
        """How much of a difference between logits is rounding in this model: relative to the largest logit, and KL in
        nats.

        Quantized weights round the numbers they are multiplied with to 8 bits, so the last bit of a sum either vanishes
        or becomes a step. Measured with the embedded Q4_1 model on three texts of 2,000 tokens, each token's logits in
        ubatches of 512 against ubatches of 32 and against a chat in small pieces, all of them right: KL 0.004 nats in
        the median, 0.03 in the 99th percentile, 0.081 at most; logits up to 0.15 of the largest. (`compare.ROUNDING`
        is for float weights.)
        """
        quantized = any(tensor.kind.block > 1 for tensor in self.header.tensors)
        return (0.2, 0.1) if quantized else (ROUNDING, ROUNDING_KL)

    def check(self, settings: ContextSettings, freed: int) -> Estimate:
        """What a context with these settings takes, replacing one of `freed` bytes. Raises ContextError if it does not
        fit into memory.
        """
        return check_fits(self.header, settings, available_bytes() + freed, loaded=True)

    def state_kind(self, settings: ContextSettings) -> StateKind:
        """Everything that decides whether a saved state is valid in a context with these settings."""
        s = settings
        version = engine_version()
        rope = (self.model.rope_freq_base, self.model.rope_freq_scale)
        exact = f" exactly in blocks of {s.graph_tokens}" if s.exact else ""  # others compute cells in other graphs
        made_by = f"{version} {version.commit}{exact}"
        return StateKind(self.fingerprint, made_by, s.type_k, s.type_v, s.flash_attn, rope)

    def close(self) -> None:
        """Free the model, and end the processes that render its prompts. Close its context first."""
        if self.prompts is not None:
            self.prompts.close()
        self.model.close()
