"""What of a chat's parameters is not as in a new chat, and what a change of them costs: as words. No widgets."""

from enum import StrEnum
from itertools import pairwise
from typing import Final

from kvdesk.conversations.parameters import Parameters
from kvdesk.policies.forecast import in_seconds
from kvdesk.protocol.prompt import PromptPreview
from kvdesk.quantities import tokens_text
from kvdesk.settings import RANDOM_SEED, Sampling, Settings
from kvdesk.thinking import AS_USUAL
from kvdesk.translation import marked, tr
from kvdesk.values import replace

_NAMED = 2  # values of sampling; more are counted
LEVEL_NAMES: Final = {
    "": marked("as the template does"),
    "off": marked("off"),
    "on": marked("on"),
    "low": marked("low effort"),
    "medium": marked("medium effort"),
    "high": marked("high effort"),
    "max": marked("the most effort"),
}
"""Of `kvdesk.thinking.LEVELS`."""


def is_changed(parameters: Parameters, settings: Settings) -> bool:
    """Whether answers in this chat are made in another way than in a new one."""
    differs = parameters.system_prompt != settings.system_prompt or bool(parameters.template)
    differs = differs or parameters.thinking != AS_USUAL
    return differs or bool(parameters.own_sampling(settings))


def button_text(parameters: Parameters, settings: Settings) -> str:
    """For the header of the chat: what is changed, in short."""
    changed = []
    if parameters.system_prompt != settings.system_prompt:
        changed.append(tr("system prompt"))
    own = parameters.own_sampling(settings)
    if len(own) > _NAMED:
        changed.append(tr("{n} values of sampling").format(n=len(own)))
    else:
        changed += [_value(parameters, name) for name in own]
    if parameters.template:
        changed.append(tr("template"))
    if parameters.thinking != AS_USUAL:
        changed.append(tr("thinking"))
    return tr("Parameters: {changes}").format(changes=tr(", ").join(changed)) if changed else tr("Parameters")


def changes(parameters: Parameters, settings: Settings) -> str:
    """All that is changed, a line for each; one sentence if nothing is."""
    lines = []
    if parameters.system_prompt != settings.system_prompt:
        lines.append(tr("Its own system prompt") if parameters.system_prompt else tr("No system prompt"))
    lines += [_value(parameters, name) for name in parameters.own_sampling(settings)]
    if parameters.template:
        lines.append(tr("Its own chat template"))
    if parameters.thinking != AS_USUAL:
        lines.append(tr("Thinking: {level}").format(level=tr(LEVEL_NAMES[parameters.thinking.level])))
    return "\n".join(lines) or tr("All parameters of this chat are as in the settings")


def cost(before: Parameters, after: Parameters, preview: PromptPreview | None) -> tuple[str, str]:
    """What applying `after` costs, and its tone. `preview`: of the prompt with `after`; None while it is not known."""
    if before == after:
        return _prompt_size(preview), "secondary"
    if replace(before, sampling=None) == replace(after, sampling=None):
        return tr("Sampling is no part of the prompt: changing it costs nothing in the cache."), "good"
    if preview is None:
        return tr("Counting the tokens …"), "secondary"
    if preview.problem and after.template and after.template != before.template:
        return tr("This template cannot be used; the one before stays in force."), "danger"
    if preview.problem or preview.refused:
        return preview.problem or preview.refused, "danger"
    if not preview.n_again:
        return tr("Nothing is prefilled again for this: the cache has all of it that it has now."), "good"
    tokens = tokens_text(preview.n_again)
    if preview.again_ms is None:
        return tr("Prefilled again with the next answer: {tokens}.").format(tokens=tokens), "warning"
    sentence = tr("Prefilled again with the next answer: {tokens}, {time}.")
    return sentence.format(tokens=tokens, time=in_seconds(preview.again_ms)), "warning"


def _prompt_size(preview: PromptPreview | None) -> str:
    if preview is None or preview.problem:
        return preview.problem if preview is not None else ""
    sentence = tr("The prompt of this chat has {n} tokens, {cached} of them in the cache.")
    return sentence.format(n=f"{preview.n_tokens:,}", cached=f"{preview.n_cached:,}")


def _value(parameters: Parameters, name: str) -> str:
    value = getattr(parameters.sampling, name)
    title = tr(Sampling.model_fields[name].title or name)
    if name == "seed" and value == RANDOM_SEED:
        return tr("{name} random").format(name=title)
    if isinstance(value, StrEnum):
        return f"{title} {value.value}"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{title} {value:,}" if is_number else title  # texts and lists have no room


def template_prompt(preview: PromptPreview) -> str:
    """The system prompt that the template writes into the prompt of a chat without one; "" if there is none."""
    parts = [""]  # between special tokens
    for token in preview.tokens[: preview.n_head]:
        if token.is_special:
            parts.append("")
        else:
            parts[-1] += token.text
    for part, after in pairwise([part.strip() for part in parts]):
        role, _, text = part.partition("\n")
        if role == "system":
            return text.strip() or after
        if role:
            break
    return ""
