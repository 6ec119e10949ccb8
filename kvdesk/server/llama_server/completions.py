"""`POST /completion`, whole and streaming: llama-server's own form (server-task.cpp, `to_json_non_oaicompat`)."""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from kvdesk.protocol.chat import PrefillProgress, RawPrompt, TextDelta, TokenLogprobs, TurnStarted
from kvdesk.server.answering import Choice, progress, timings
from kvdesk.server.logprobs import chat_logprobs, sampled_probs
from kvdesk.server.mixed_prompts import TokenizedPrompt, prompts_of, tokens_of
from kvdesk.server.prefix_cache import prefix_cache
from kvdesk.server.raw_completion import RawCompletion
from kvdesk.server.request.sampling import BANNED, check_schema
from kvdesk.server.request.schemas import MOST_ANSWERS, MOST_PROBS, Sampled, Whole
from kvdesk.server.service import Service
from kvdesk.server.streaming import sse
from kvdesk.settings import Mirostat, Sampling

_NAMED_OTHERWISE: Final = frozenset({"max_tokens", "json_schema", "logit_bias", "mirostat"})
"""Fields of `Sampling` that llama-server writes in another form."""
_STOP_TYPES: Final = {"limit": "limit", "context full": "limit", "stop string": "word"}


class LlamaSampled(Sampled):
    """What `/completion` and `/infill` share. `response_fields`: only these of the answer, such as
    `generation_settings/n_predict`; `t_max_predict_ms`: see `Answering`.
    """

    n_probs: Whole = Field(0, ge=0, le=MOST_PROBS)
    post_sampling_probs: bool = False
    return_tokens: bool = False
    return_progress: bool = False
    t_max_predict_ms: Whole = Field(-1, ge=-1)
    response_fields: list[str] = Field(default_factory=list, max_length=100)


class LlamaCompletionRequest(LlamaSampled):
    """`/completion`. `prompt` is read by `kvdesk.server.mixed_prompts`."""

    prompt: Any


async def complete(service: Service, http: Request) -> Response:
    """llama-server's own form of a completion: `prompt` also as a list of texts and token ids, `n_probs`,
    `response_fields`.
    """
    request = await service.body(http, LlamaCompletionRequest)
    await check_schema(request)
    several = isinstance(request.prompt, list) and not any(isinstance(part, int) for part in request.prompt)
    parts = prompts_of(request.prompt, "prompt", MOST_ANSWERS // request.n)
    prompts = [await tokens_of(service, one) for one in parts]
    return LlamaCompletion(service, request, http, prompts, several=several).response()


class LlamaCompletion(RawCompletion):
    """One request. `several`: the answer is a list. Raises ApiError if it cannot be asked."""

    def __init__(
        self,
        service: Service,
        request: LlamaSampled,
        http: Request,
        prompts: Sequence[TokenizedPrompt],
        *,
        several: bool = False,
    ) -> None:
        self._request, self._prompts = request, prompts
        self._several = several or request.n > 1
        self.most_s = max(0, request.t_max_predict_ms) / 1e3
        raw = [RawPrompt(tokens=prompt.tokens) for prompt in prompts]
        super().__init__(service, request, http, raw, request.n_probs or -1, sampled_probs=request.post_sampling_probs)

    async def _whole(self) -> Any:
        async with self._answering() as answering:
            await answering.finish()
        found = []
        for choice in answering.choices:
            one = self._final(choice)
            one |= {"content": choice.text, "tokens": choice.tokens if self._request.return_tokens else []}
            if self._request.n_probs:
                one["completion_probabilities"] = self._probabilities(choice.logprobs)
            found.append(_chosen(one, self._request.response_fields))
        return found if self._several else found[0]

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        async with self._answering() as answering:
            n_sent = [0 for _ in answering.choices]
            async for choice, event in answering.events():
                if isinstance(event, TextDelta) and (event.text or event.tokens):
                    for content, tokens, logprobs in self._pieces(event):
                        n_sent[choice.index] += len(tokens)
                        chunk = self._partial(choice, n_sent[choice.index]) | {"content": content, "tokens": tokens}
                        if self._request.n_probs:
                            chunk["completion_probabilities"] = self._probabilities(logprobs)
                        yield sse(chunk)
                elif isinstance(event, TurnStarted | PrefillProgress) and self._request.return_progress:
                    yield sse(self._partial(choice, 0) | {"prompt_progress": progress(choice, event)})
                elif choice.finish is not None:
                    yield sse(_chosen(self._final(choice), self._request.response_fields))

    def _pieces(self, event: TextDelta) -> Iterator[tuple[str, list[int], Sequence[TokenLogprobs]]]:
        """Text, tokens and their probabilities: with those one token at a time, the text beside the first."""
        if not self._request.n_probs:
            yield event.text, list(event.tokens), ()
            return
        for i, one in enumerate(event.logprobs):
            yield event.text if i == 0 else "", [one.chosen.token], (one,)

    def _probabilities(self, logprobs: Sequence[TokenLogprobs]) -> Any:
        return sampled_probs(logprobs) if self._request.post_sampling_probs else chat_logprobs(logprobs)["content"]

    def _partial(self, choice: Choice, n_predicted: int) -> dict[str, Any]:
        return {
            "index": choice.index,
            "content": "",
            "tokens": [],
            "stop": False,
            "id_slot": choice.slot,
            "tokens_predicted": n_predicted,
            "tokens_evaluated": choice.prompt[0],
            **({"timings": timings(choice.so_far)} if self._request.timings_per_token else {}),
        }

    def _final(self, choice: Choice) -> dict[str, Any]:
        stats = choice.stats
        return self._partial(choice, stats.generated_tokens) | {
            "stop": True,
            "model": self._service.model_name,
            "generation_settings": {
                **generation_settings(choice.command.sampling),
                "stream": self._request.stream,
                "n_probs": self._request.n_probs,
                "post_sampling_probs": self._request.post_sampling_probs,
            },
            "prompt": self._prompts[choice.index // self._request.n].text,
            "has_new_line": "\n" in choice.text,
            "truncated": choice.reason == "context full",
            "stop_type": _STOP_TYPES.get(choice.reason, "eos"),
            "stopping_word": choice.stopped_by,
            "tokens_cached": max(0, stats.prompt_tokens + stats.generated_tokens - 1),
            "timings": timings(stats),
            **prefix_cache(choice),
        }


def generation_settings(sampling: Sampling) -> dict[str, Any]:
    """As llama-server reports them (`task_params::to_json`)."""
    return {
        **sampling.model_dump(mode="json", exclude=set(_NAMED_OTHERWISE)),
        "mirostat": list(Mirostat).index(sampling.mirostat),
        "logit_bias": [
            {"token": token, "bias": None if bias <= BANNED else bias} for token, bias in sampling.logit_bias
        ],
        "max_tokens": sampling.max_tokens,
        "n_predict": sampling.max_tokens,
    }


def _chosen(whole: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    """The fields that a client wants, each by its path; all of them without a wish."""
    if not fields:
        return dict(whole)
    found: dict[str, Any] = {}
    for field in fields:
        value: Any = whole
        for name in field.split("/"):
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None:
            found[field] = value
    return found
