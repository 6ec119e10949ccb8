"""The order of the samplers, by the names that llama-server knows (common/sampling.cpp,
`common_sampler_types_from_names`, `common_sampler_types_from_chars`).
"""

from collections.abc import Sequence
from typing import Final

from kvdesk.settings import SamplerName

_LETTERS: Final = dict(zip("edskypmxt", SamplerName, strict=True))
"""A text has one letter for each."""
_NAMES: Final = {
    **{name.replace("_", between): name for name in SamplerName for between in ("_", "-", "")},
    "nucleus": SamplerName.TOP_P,
    "temp": SamplerName.TEMPERATURE,
    "typ": SamplerName.TYPICAL_P,
    "typical_p": SamplerName.TYPICAL_P,
}


def samplers_of(given: str | Sequence[str]) -> tuple[SamplerName, ...]:
    """Those that are known here, each once."""
    known = _LETTERS if isinstance(given, str) else _NAMES
    return tuple(dict.fromkeys(known[name.lower()] for name in given if name.lower() in known))


def unknown_samplers(given: str | Sequence[str]) -> list[str]:
    """Those that are not, such as `infill`: llama-server's clients for editors always name it."""
    known = _LETTERS if isinstance(given, str) else _NAMES
    return [name for name in given if name.lower() not in known]
