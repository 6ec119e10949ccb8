"""How the next token is chosen: llama.cpp's samplers, with the defaults of its programs (common/common.h)."""

import json
import math
import re
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from kvdesk.numerals import read_real
from kvdesk.settings.table import Table, llama
from kvdesk.translation import marked, tr

RANDOM_SEED: Final = 0xFFFFFFFF
"""A new seed for every answer (LLAMA_DEFAULT_SEED, llama.h)."""

MOST_TEXT: Final = 100_000
"""Characters of a grammar or a JSON schema."""
MOST_BREAKER_BYTES: Final = 40
"""llama.cpp cuts longer sequence breakers (llama_sampler_init_dry)."""
MOST_BREAKERS: Final = 50
MOST_STOP_CHARS: Final = 200
MOST_STOPS: Final = 32
MOST_BIASES: Final = 1000
_MOST_WINDOW = 65536
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}


class SamplerName(StrEnum):
    """Samplers whose order can be chosen, by the names of llama.cpp's option `--samplers` (common/sampling.cpp)."""

    PENALTIES = "penalties"
    DRY = "dry"
    TOP_N_SIGMA = "top_n_sigma"
    TOP_K = "top_k"
    TYPICAL_P = "typ_p"
    TOP_P = "top_p"
    MIN_P = "min_p"
    XTC = "xtc"
    TEMPERATURE = "temperature"


class Mirostat(StrEnum):
    """Which Mirostat chooses the token, if one does."""

    OFF = "off"
    V1 = "1"
    V2 = "2"


Texts = tuple[str, ...]
Bias = tuple[int | str, float]
"""A token id, or a text of which every token is meant, and what is added to its logit."""


def _each_once(samplers: tuple[SamplerName, ...]) -> tuple[SamplerName, ...]:
    if len(set(samplers)) != len(samplers):
        raise ValueError("a sampler can be named once only")
    return samplers


def _breakers(texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        n_bytes = len(text.encode("utf-8", "replace"))
        if not 0 < n_bytes <= MOST_BREAKER_BYTES or "\0" in text or not _is_utf8(text):
            raise ValueError(f"a sequence breaker is a text of 1 to {MOST_BREAKER_BYTES} bytes")
    return texts


def _stops(texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        if not 0 < len(text) <= MOST_STOP_CHARS or "\0" in text or not _is_utf8(text):
            raise ValueError(f"a stop string is a text of 1 to {MOST_STOP_CHARS} characters")
    return texts


def _biases(biases: tuple[Bias, ...]) -> tuple[Bias, ...]:
    for token, _ in biases:
        if isinstance(token, str) and (not token or not _is_utf8(token)):
            raise ValueError("a text with a bias needs a character")
    return biases


def _text(text: str) -> str:
    if "\0" in text or not _is_utf8(text):
        raise ValueError("it has characters that are no text")
    return text


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


class Sampling(Table):
    """The samplers of an answer. `kvdesk.backends.local.llama.samplers.sampler` makes llama.cpp's chain of them."""

    temperature: float = Field(
        0.8,
        ge=0.0,
        le=5.0,
        title=marked("Temperature"),
        json_schema_extra=llama("temp"),
        description=marked("Higher is more varied; 0 always takes the most likely token (greedy)"),
    )
    top_k: int = Field(
        40,
        ge=0,
        le=1_000_000,
        title=marked("Top K"),
        json_schema_extra=llama("top_k"),
        description=marked("Choose among the K most likely tokens; 0 among all"),
    )
    top_p: float = Field(
        0.95,
        ge=0.0,
        le=1.0,
        title=marked("Top P"),
        json_schema_extra=llama("top_p"),
        description=marked("Choose among the most likely tokens whose probabilities add up to P; 1 among all"),
    )
    min_p: float = Field(
        0.05,
        ge=0.0,
        le=1.0,
        title=marked("Min P"),
        json_schema_extra=llama("min_p"),
        description=marked("Leave out tokens less likely than this share of the most likely one; 0 leaves out none"),
    )
    repeat_penalty: float = Field(
        1.0,
        ge=0.1,
        le=4.0,
        title=marked("Repeat penalty"),
        json_schema_extra=llama("repeat_penalty"),
        description=marked("Above 1, tokens that came recently are less likely; 1 changes nothing"),
    )
    repeat_last_n: int = Field(
        64,
        ge=0,
        le=_MOST_WINDOW,
        title=marked("Tokens to penalize"),
        json_schema_extra=llama("repeat_last_n"),
        description=marked(
            "How many of the last tokens the repeat, presence and frequency penalties look at; 0 switches them off"
        ),
    )
    seed: int = Field(
        RANDOM_SEED,
        ge=0,
        le=RANDOM_SEED,
        title=marked("Seed"),
        json_schema_extra=llama("seed"),
        description=marked(
            "Random draws a new seed for every answer; with a number, the same prompt gets the same answer"
        ),
    )
    max_tokens: int = Field(
        1024,
        ge=1,
        le=1 << 20,
        title=marked("Answer length"),
        json_schema_extra=llama("n_predict"),
        description=marked("Most tokens in one answer"),
    )
    presence_penalty: float = Field(
        0.0,
        ge=-2.0,
        le=2.0,
        title=marked("Presence penalty"),
        json_schema_extra=llama("presence_penalty"),
        description=marked("Taken from the logit of every token that came recently; 0 changes nothing"),
    )
    frequency_penalty: float = Field(
        0.0,
        ge=-2.0,
        le=2.0,
        title=marked("Frequency penalty"),
        json_schema_extra=llama("frequency_penalty"),
        description=marked("Taken from a token's logit once for each time it came recently; 0 changes nothing"),
    )
    dynatemp_range: float = Field(
        0.0,
        ge=0.0,
        le=5.0,
        title=marked("Dynamic temperature range"),
        json_schema_extra=llama("dynatemp_range"),
        description=marked(
            "How far the temperature moves up and down, depending on how certain the model is; 0 keeps it fixed"
        ),
    )
    dynatemp_exponent: float = Field(
        1.0,
        ge=0.0,
        le=10.0,
        title=marked("Dynamic temperature exponent"),
        json_schema_extra=llama("dynatemp_exponent"),
        description=marked("How the entropy of the next token becomes a dynamic temperature; 1 in proportion"),
    )
    typical_p: float = Field(
        1.0,
        ge=0.0,
        le=1.0,
        title=marked("Typical P"),
        json_schema_extra=llama("typical_p"),
        description=marked(
            "Choose among the tokens nearest to the expected information whose probabilities add up to P; 1 among all"
        ),
    )
    top_n_sigma: float = Field(
        -1.0,
        ge=-1.0,
        le=100.0,
        title=marked("Top n-sigma"),
        json_schema_extra=llama("top_n_sigma"),
        description=marked(
            "Leave out tokens whose logit is more than n standard deviations below the highest; 0 or less "
            "leaves out none"
        ),
    )
    xtc_probability: float = Field(
        0.0,
        ge=0.0,
        le=1.0,
        title=marked("XTC probability"),
        json_schema_extra=llama("xtc_probability"),
        description=marked(
            "How often the most likely tokens are left out, so that answers are less predictable; 0 never"
        ),
    )
    xtc_threshold: float = Field(
        0.1,
        ge=0.0,
        le=1.0,
        title=marked("XTC threshold"),
        json_schema_extra=llama("xtc_threshold"),
        description=marked("Of the tokens at least so likely, XTC leaves all but the last; above 0.5 it does nothing"),
    )
    dry_multiplier: float = Field(
        0.0,
        ge=0.0,
        le=100.0,
        title=marked("DRY multiplier"),
        json_schema_extra=llama("dry_multiplier"),
        description=marked(
            "Strength of the penalty for tokens that would go on repeating a sequence; 0 switches it off"
        ),
    )
    dry_base: float = Field(
        1.75,
        ge=1.0,
        le=10.0,
        title=marked("DRY base"),
        json_schema_extra=llama("dry_base"),
        description=marked("How fast that penalty grows with the length of the repeated sequence"),
    )
    dry_allowed_length: int = Field(
        2,
        ge=0,
        le=_MOST_WINDOW,
        title=marked("DRY allowed length"),
        json_schema_extra=llama("dry_allowed_length"),
        description=marked("Repeated sequences of up to this many tokens have no penalty"),
    )
    dry_penalty_last_n: int = Field(
        64,
        ge=0,
        le=_MOST_WINDOW,
        title=marked("DRY window"),
        json_schema_extra=llama("dry_penalty_last_n"),
        description=marked("How many of the last tokens are searched for repetitions; 0 switches DRY off"),
    )
    dry_sequence_breakers: Annotated[tuple[str, ...], AfterValidator(_breakers)] = Field(
        ("\n", ":", '"', "*"),
        max_length=MOST_BREAKERS,
        title=marked("DRY sequence breakers"),
        json_schema_extra=llama("dry_sequence_breakers"),
        description=marked("Texts that end a repetition, one a line; \\n is the end of a line"),
    )
    mirostat: Mirostat = Field(
        Mirostat.OFF,
        title=marked("Mirostat"),
        json_schema_extra=llama("mirostat"),
        description=marked(
            "Chooses tokens so that each is as surprising as the target; replaces all samplers except the temperature"
        ),
    )
    mirostat_tau: float = Field(
        5.0,
        ge=0.0,
        le=20.0,
        title=marked("Mirostat target entropy"),
        json_schema_extra=llama("mirostat_tau"),
        description=marked("How much a token is to surprise, in bits; lower is more predictable"),
    )
    mirostat_eta: float = Field(
        0.1,
        ge=0.0,
        le=1.0,
        title=marked("Mirostat learning rate"),
        json_schema_extra=llama("mirostat_eta"),
        description=marked("How fast Mirostat follows its target"),
    )
    adaptive_target: float = Field(
        -1.0,
        ge=-1.0,
        le=1.0,
        title=marked("Adaptive P target"),
        json_schema_extra=llama("adaptive_target"),
        description=marked("Chooses tokens whose probability is near this one, on average; below 0 it is off"),
    )
    adaptive_decay: float = Field(
        0.9,
        ge=0.0,
        le=0.99,
        title=marked("Adaptive P decay"),
        json_schema_extra=llama("adaptive_decay"),
        description=marked("How long adaptive P remembers: about 1 / (1 - decay) tokens"),
    )
    logit_bias: Annotated[
        tuple[tuple[int | str, Annotated[float, Field(ge=-100.0, le=100.0)]], ...], AfterValidator(_biases)
    ] = Field(
        (),
        max_length=MOST_BIASES,
        title=marked("Logit bias"),
        json_schema_extra=llama("logit_bias"),
        description=marked(
            "Makes tokens more or less likely, one a line: a token id or a text in quotes, then what is added "
            'to its logit, such as 15043-1.5 or " hello"+2; -100 bans it'
        ),
    )
    grammar: Annotated[str, AfterValidator(_text)] = Field(
        "",
        max_length=MOST_TEXT,
        title=marked("Grammar"),
        json_schema_extra=llama("grammar"),
        description=marked("Answers follow this grammar, in llama.cpp's notation GBNF; it begins at the rule root"),
    )
    json_schema: Annotated[str, AfterValidator(_text)] = Field(
        "",
        max_length=MOST_TEXT,
        title=marked("JSON schema"),
        json_schema_extra=llama("json_schema"),
        description=marked("Answers are JSON that this schema describes; {} is any object"),
    )
    samplers: Annotated[tuple[SamplerName, ...], AfterValidator(_each_once)] = Field(
        tuple(SamplerName),
        max_length=len(SamplerName),
        title=marked("Order of the samplers"),
        json_schema_extra=llama("samplers"),
        description=marked("The samplers work in this order; one that is not ticked does nothing"),
    )
    stop: Annotated[tuple[str, ...], AfterValidator(_stops)] = Field(
        (),
        max_length=MOST_STOPS,
        title=marked("Stop strings"),
        json_schema_extra=llama("antiprompt"),
        description=marked("An answer ends before the first of these texts, one a line; \\n is the end of a line"),
    )

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is taken: the temperature is 0, and is not left out of the order."""
        applied = self.mirostat is not Mirostat.OFF or SamplerName.TEMPERATURE in self.samplers
        return self.temperature <= 0.0 and self.dynatemp_range <= 0.0 and applied


_BIAS: Final = re.compile(r'\s*(?P<token>\d+|"(?:[^"\\]|\\.)*")\s*(?P<bias>[+−-][^"e]+(?:e-?[0-9]+)?)\s*')


def bias_text(biases: tuple[Bias, ...]) -> str:
    """One bias a line, as `parsed_biases` reads it: `15043-1.5`, `" hello"+2`."""
    names = (json.dumps(token, ensure_ascii=False) if isinstance(token, str) else str(token) for token, _ in biases)
    return "\n".join(f"{name}{bias:+.12g}" for name, (_, bias) in zip(names, biases, strict=True))


def _bias(text: str) -> float:
    """A bias, with a point or a comma; `bias_text` writes very small ones as 1e-05. Raises ValueError."""
    number, _, exponent = text.partition("e")
    found = read_real(number)
    if found is None:
        raise ValueError
    return float(f"{found!r}e{exponent}") if exponent else found


def parsed_biases(text: str) -> tuple[Bias, ...]:
    """The biases of a text in llama.cpp's notation, one a line. Raises ValueError with a sentence."""
    found: list[Bias] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        match = _BIAS.fullmatch(line)
        try:
            if match is None:
                raise ValueError
            token = json.loads(match["token"]) if match["token"].startswith('"') else int(match["token"])
            bias = _bias(match["bias"])
        except ValueError:
            raise ValueError(
                tr("Line {line} of the logit bias is not a token id, or a text in quotes, and a number.").format(
                    line=number
                )
            ) from None
        if not math.isfinite(bias) or abs(bias) > 100 or (isinstance(token, int) and token >= 1 << 31):
            raise ValueError(tr("Line {line} of the logit bias is out of range: -100 to 100.").format(line=number))
        found.append((token, bias))
    if len(found) > MOST_BIASES:
        raise ValueError(tr("There are more than {n:,} biases.").format(n=MOST_BIASES))
    try:
        return _biases(tuple(found))
    except ValueError:
        raise ValueError(tr("A text of the logit bias has no characters.")) from None


def escaped_lines(texts: tuple[str, ...]) -> str:
    """One text a line, the end of a line as \\n: as `parsed_breakers` and `parsed_stops` read it."""
    escaped = [text.replace("\\", "\\\\") for text in texts]
    for letter, char in _ESCAPES.items():
        escaped = [text.replace(char, f"\\{letter}") for text in escaped]
    return "\n".join(escaped)


def _parsed(text: str, check: Callable[[Texts], Texts], most: int, too_many: str, wrong: str) -> Texts:
    """The other way round, each text once. Raises ValueError with one of both sentences."""
    lines = (line for line in text.split("\n") if line)
    found = tuple(dict.fromkeys(_ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), line) for line in lines))
    if len(found) > most:
        raise ValueError(too_many)
    try:
        return check(found)
    except ValueError:
        raise ValueError(wrong) from None


def parsed_breakers(text: str) -> tuple[str, ...]:
    """Sequence breakers, one a line. Raises ValueError with a sentence."""
    too_many = tr("There are more than {n} sequence breakers.").format(n=MOST_BREAKERS)
    wrong = tr("A sequence breaker is a text of at most {n} bytes.").format(n=MOST_BREAKER_BYTES)
    return _parsed(text, _breakers, MOST_BREAKERS, too_many, wrong)


def parsed_stops(text: str) -> tuple[str, ...]:
    """Stop strings, one a line. Raises ValueError with a sentence."""
    too_many = tr("There are more than {n} stop strings.").format(n=MOST_STOPS)
    wrong = tr("A stop string is a text of at most {n} characters.").format(n=MOST_STOP_CHARS)
    return _parsed(text, _stops, MOST_STOPS, too_many, wrong)


def checked_text(text: str) -> str:
    """A grammar or a JSON schema. Raises ValueError with a sentence."""
    if len(text) > MOST_TEXT:
        raise ValueError(tr("The text has more than {n:,} characters.").format(n=MOST_TEXT))
    try:
        return _text(text)
    except ValueError:
        raise ValueError(tr("The text has characters that are no text.")) from None
