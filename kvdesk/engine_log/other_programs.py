"""Numbers of a request that a program other than llama-server prints in one line: Ollama, LM Studio, llama-cpp-python,
KoboldCpp, TabbyAPI, oMLX.
"""

from typing import Final

from kvdesk.engine_log.events import Event
from kvdesk.engine_log.record import Request
from kvdesk.engine_log.sentences import Kind

KOBOLD: Final = "KoboldCpp"
OMLX: Final = "oMLX"
LLAMA_CPP_PYTHON: Final = "llama-cpp-python"
_PROGRAMS: Final = {
    **dict.fromkeys((Kind.KOBOLD_READS, Kind.KOBOLD_ENDED, Kind.KOBOLD_LOADED), KOBOLD),
    Kind.SUMMARY: "LM Studio",
    Kind.TABBY: "TabbyAPI",
    Kind.OMLX: OMLX,
}


def program_of(event: Event) -> str:
    """Who wrote such a line; "" if it is of another cache of Ollama."""
    if event.kind in _PROGRAMS:
        return _PROGRAMS[event.kind]
    if event.values.keys() & {"cache", "left"}:
        return "Ollama"
    return LLAMA_CPP_PYTHON if "used" in event.values else ""


def left_by(r: Request) -> int:
    """Tokens that a request of llama-cpp-python left in its one sequence; -1 if the log does not say it."""
    n_prompt = r.n_prompt if r.n_prompt >= 0 else r.read
    return n_prompt + r.generated if n_prompt >= 0 and r.generated >= 0 else -1


def is_same(r: Request, event: Event) -> bool:
    """Whether oMLX says more of a request whose numbers it printed already."""
    return event.kind is Kind.OMLX and (r.reused, r.read) == (event.number("used"), event.number("remaining"))


def take_lookup(r: Request, event: Event) -> None:
    """What was found in the cache before the prompt is read."""
    used = event.number("used", event.number("cached", 0))
    remaining = event.number("remaining", event.number("left"))
    r.n_prompt = event.number("prompt", event.number("n", event.number("total")))
    if event.kind is Kind.LOOKUP_FORCED:
        r.same, r.reused, r.forced = used, 0, True
        return
    r.reused, r.same = used, event.number("matched", used)
    if event.values.keys() & {"cache", "stored"}:  # of a sequence that another request than the last may have left
        r.held, r.prompt_before = event.number("cache", event.number("stored")), -1
    if r.same > used and event.kind is not Kind.OMLX:  # Ollama's MLX goes back to a snapshot, or to the beginning
        r.restored, r.forced = used or -1, not used
    r.read = remaining if remaining >= 0 else r.n_prompt - used
    r.n_prompt = r.n_prompt if r.n_prompt >= 0 else used + remaining
    if event.kind is Kind.TABBY:  # printed when the answer has ended
        r.generated = event.number("generated")
        r.prompt_ms = 1e3 * remaining / speed if (speed := event.real("speed")) > 0 else -1.0


def take_kobold(r: Request, event: Event) -> None:
    """What KoboldCpp still has to read, then the numbers of the whole request. What was reused follows from both. What
    it loaded from another slot may end before the first difference.
    """
    if event.kind is Kind.KOBOLD_LOADED:
        r.loaded, r.held = 1.0, -1
        return
    if event.kind is Kind.KOBOLD_READS:
        r.read = event.number("read")
        return
    read_s, generated_s, used = event.real("s"), event.real("generated_s"), event.number("used")
    r.generated = event.number("generated", round(generated_s * event.real("generated_speed")))
    r.prompt_ms, r.generated_ms = 1e3 * read_s, 1e3 * generated_s
    r.n_prompt, r.read = max(0, used - r.generated), event.number("read", r.read)
    if r.read > used:  # of all that was to be read
        r.read, r.cancelled = r.n_prompt, True
    if r.read < 0:
        r.read, r.is_rounded = min(r.n_prompt, round(read_s * event.real("speed"))), True
    r.reused = max(0, r.n_prompt - r.read)
