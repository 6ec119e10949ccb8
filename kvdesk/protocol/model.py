"""A model: where it comes from, and what is known of it."""

from pathlib import Path

from kvdesk.paths import model_name
from kvdesk.values import dataclass, field


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A GGUF file on this machine."""

    path: Path

    @property
    def name(self) -> str:
        return model_name(self.path)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that speaks OpenAI's chat completions at `url`. `model`: its name there, "" the first one; `server`:
    what the user calls the server.
    """

    url: str
    model: str
    server: str = ""

    @property
    def label(self) -> str:
        """What the server is called where a user reads it."""
        return self.server or self.url.partition("://")[2] or self.url

    @property
    def name(self) -> str:
        return self.model or self.label


ModelSource = LocalFile | Endpoint


@dataclass(frozen=True, slots=True)
class InfillTokens:
    """Tokens that mark the parts of a text to be filled in, such as `<|fim_prefix|>`; -1 if there is none."""

    prefix: int = -1
    suffix: int = -1
    middle: int = -1
    repository: int = -1
    separator: int = -1

    @property
    def fills(self) -> bool:
        """Whether a text can be filled in."""
        return min(self.prefix, self.suffix, self.middle) >= 0


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A loaded model. Sizes in bytes; what a back end does not know is 0 or empty."""

    source: ModelSource
    name: str
    architecture: str = ""
    description: str = ""  # llama_model_desc, such as "llama ?B Q4_1"
    size_bytes: int = 0
    n_params: int = 0
    n_ctx_train: int = 0
    n_layer: int = 0
    n_vocab: int = 0
    has_text: bool = True  # False: no text tokenizer, token ids only
    template: str = ""  # the chat template (Jinja)
    bos: str = ""  # text of the token that begins a sequence; eos: that ends one
    eos: str = ""
    license: str = ""  # as the file names it, such as "apache-2.0"
    ends: tuple[int, ...] = ()  # tokens that end an answer
    infill: InfillTokens = field(default_factory=InfillTokens)
