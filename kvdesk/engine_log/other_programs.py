"""Numbers of a request that a program other than llama-server prints in one line: Ollama, LM Studio, llama-cpp-python,
KoboldCpp.
"""

from kvdesk.engine_log.events import Event
from kvdesk.engine_log.record import Request
from kvdesk.engine_log.sentences import Kind


def program_of(event: Event) -> str:
    """Who wrote such a line; "" if it is of another cache of Ollama."""
    if event.kind in (Kind.KOBOLD_READS, Kind.KOBOLD_ENDED):
        return "KoboldCpp"
    if event.kind is Kind.SUMMARY:
        return "LM Studio"
    if event.values.keys() & {"cache", "left"}:
        return "Ollama"
    return "llama-cpp-python" if "used" in event.values else ""


def take_lookup(r: Request, event: Event) -> None:
    """What was found in the cache before the prompt is read."""
    used = event.number("used", event.number("cached", 0))
    remaining = event.number("remaining", event.number("left"))
    r.n_prompt = event.number("prompt", event.number("n", event.number("total")))
    if event.kind is Kind.LOOKUP_FORCED:
        r.same, r.reused, r.forced = used, 0, True
        return
    r.reused, r.same = used, event.number("matched", used)
    if r.same > used:  # Ollama's MLX goes back to a snapshot, or to the beginning
        r.restored, r.forced = used or -1, not used
    r.read = remaining if remaining >= 0 else r.n_prompt - used
    r.n_prompt = r.n_prompt if r.n_prompt >= 0 else used + remaining


def take_kobold(r: Request, event: Event) -> None:
    """What KoboldCpp still has to read, then the numbers of the whole request. What was reused follows from both."""
    if event.kind is Kind.KOBOLD_READS:
        r.read = event.number("read")
        return
    read_s, generated_s = event.real("s"), event.real("generated_s")
    r.generated = event.number("generated", round(generated_s * event.real("generated_speed")))
    r.prompt_ms, r.generated_ms = 1e3 * read_s, 1e3 * generated_s
    r.n_prompt = max(0, event.number("used") - r.generated)
    if r.read < 0:
        r.read, r.is_rounded = min(r.n_prompt, round(read_s * event.real("speed"))), True
    r.reused = max(0, r.n_prompt - r.read)
