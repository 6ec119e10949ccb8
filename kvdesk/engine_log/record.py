"""The record of a log: its requests, and what is known of the server. Numbers that the log does not say are -1."""

from typing import Final

from kvdesk.cache.reuse.prompt_change import Prompt
from kvdesk.engine_log.events import Event
from kvdesk.engine_log.pools import Pool
from kvdesk.engine_log.sentences import Kind
from kvdesk.values import dataclass, field

MOST_SLOTS: Final = 256
"""Slots that are remembered: llama.cpp has no more sequences."""


@dataclass(slots=True)
class Server:
    """What the log says of the server. -1: unknown.

    memory   "attention", "window", "recurrent": what a part of a state can be cut from; "" unknown
    program  whose own sentences were met last, such as "Ollama" or "LM Studio"; "" for llama-server
    inside   the program that runs llama-server: "Ollama", "LM Studio"; "" none that is known
    source   which of the programs that write the log it is, "" if there is one alone
    level    the highest level of llama-server's lines that were met
    is_unified    all slots share one cache
    ms_per_token  of the last prompt that was read
    similarity    `--slot-prompt-similarity`, llama-server's default until it is printed
    no_room       batches that found no free cells while the log shows no request; no_memory: the cache was not made
    never_reused  what made --cache-reuse void, "" nothing
    n_cut, cut_from   prompts whose beginning was cut off, of which the log shows nothing else; tokens of the longest
    pool          numbers of all requests together: vLLM, SGLang, /metrics
    """

    model: str = ""
    url: str = ""
    slots: int = -1
    ctx: int = -1
    ram_mib: int = -1
    checkpoints: int = -1
    memory: str = ""
    full_window: bool = False
    can_preserve: bool = False
    program: str = ""
    inside: str = ""
    source: str = ""
    level: int = 0
    is_unified: bool = False
    n_dropped: int = 0
    dropped_mib: float = 0.0
    n_lines: int = 0
    ms_per_token: float = 0.0
    similarity: float = 0.1
    no_room: int = 0
    no_memory: bool = False
    never_reused: str = ""
    n_cut: int = 0
    cut_from: int = 0
    pool: Pool = field(default_factory=Pool)

    @property
    def name(self) -> str:
        """What wrote the log, in llama.cpp's or its own name."""
        other = self.program or ("" if self.level else self.pool.program)
        return other or (f"llama-server in {self.inside}" if self.inside else "llama-server")

    def learn(self, event: Event) -> None:
        """Apply what an event says of the server itself, not of a request."""
        match event.kind:
            case Kind.SLOTS:
                self.slots, self.ctx = event.number("n"), event.number("ctx")
                self.is_unified = event.values.get("unified", "").startswith("true")
            case Kind.RAM_LIMIT | Kind.RAM_OFF as kind:
                self.ram_mib = event.number("mib") if kind is Kind.RAM_LIMIT else 0
            case Kind.CHECKPOINT_LIMIT | Kind.CHECKPOINTS_OFF as kind:
                self.checkpoints = event.number("n") if kind is Kind.CHECKPOINT_LIMIT else 0
            case Kind.PRESERVES:
                self.can_preserve = True
            case Kind.WINDOW:
                self.memory = self.memory or "window"
            case Kind.RECURRENT:
                self.memory = "recurrent"
            case Kind.FULL_WINDOW:
                self.full_window = True
            case Kind.LISTENING:
                self.url = self.url or event.values["url"].strip().partition(" ")[0][:200]
            case Kind.IN_LM_STUDIO:
                self.inside = "LM Studio"
            case Kind.NO_MEMORY:
                self.no_memory = True
            case Kind.NEVER_REUSED:
                self.never_reused = event.values["what"].partition(",")[0][:60]
            case _:
                self.pool.learn(event)


@dataclass(slots=True)
class Request:
    """One request, to `server`. Numbers of tokens are -1 if the log does not say them.

    n_prompt, reused, read   of its prompt: all, from the cache, computed
    held, same   tokens the slot held before, and how many of them begin the prompt
    is_rounded   `same` and `held` follow from similarities with three digits, or `n_prompt` from a slot with drafts
    has_drafts   tokens were drafted: what was accepted behind the answer's last token is in the slot too
    accepted     share of the drafted tokens, -1 none
    how          "similarity", "age", "id": how the slot was chosen; "" unknown
    sim, keep    shares that the server printed; threshold: of similarity that it asks for
    elsewhere    the other slot whose tokens begin the prompt best, its tokens that do, and whether it was busy
    prepared     what had happened to the slot before: "" | "cleared" | "purged" | "restored" | "adapters" | "shifted" |
                 "file": it was saved to one, or restored or erased
    has_begin    the log has what was said before the prompt was read
    is_first     of its slot; has_earlier: another slot, or this one, had a request before; after_load: a model was
                 loaded after earlier requests
    against      the position that a checkpoint must begin before, as far as the window reaches back; -1 unknown
    begins       the position from which the prompt is read; -1 unknown
    checked, created, invalidated, erased   checkpoints; restored: tokens of the one that was restored, -1 none
    loaded       share of the prompt that a prompt saved in memory brought, -1 none; load_failed: its state did not fit
    ended        the log says so
    follows      the earlier prompt of another slot that this one most likely follows, and the share that is alike
    prompt_before  tokens of the prompt before in this slot; thought: the answer to that had reasoning
    old, new     text around the first difference, where the server was asked for it
    body         JSON of a request with messages, while its server runs and may be asked about them; else ""
    """

    slot: int
    task: int
    line: int
    clock: str = ""
    path: str = ""
    status: int = -1
    n_prompt: int = -1
    reused: int = -1
    read: int = -1
    prompt_ms: float = -1.0
    generated: int = -1
    generated_ms: float = -1.0
    held: int = -1
    same: int = -1
    is_rounded: bool = False
    has_drafts: bool = False
    accepted: float = -1.0
    how: str = ""
    sim: float = -1.0
    keep: float = -1.0
    threshold: float = -1.0
    elsewhere: tuple[int, int, bool] | None = None
    prepared: str = ""
    has_begin: bool = False
    is_first: bool = False
    has_earlier: bool = False
    after_load: bool = False
    forced: bool = False
    window: int = -1
    against: int = -1
    begins: int = -1
    checked: int = 0
    created: int = 0
    created_mib: float = 0.0
    invalidated: int = 0
    erased: int = 0
    restored: int = -1
    loaded: float = -1.0
    load_failed: bool = False
    dropped: int = 0
    no_room: bool = False
    reuse_off: int = -1
    chunks: int = 0
    shifted: int = -1
    truncated: bool = False
    cut_from: int = -1
    ended: bool = False
    error: str = ""
    cancelled: bool = False
    old: str = ""
    new: str = ""
    body: str = ""
    prompt: Prompt | None = None
    before: Prompt | None = None
    follows: tuple[Prompt, float] | None = None
    cache_prompt: bool | None = None
    prompt_before: int = -1
    thought: bool = False
    levels: set[int] = field(default_factory=set)
    server: Server = field(default_factory=Server)

    @property
    def has_numbers(self) -> bool:
        """Whether the log says how much of its prompt was reused."""
        return 0 <= self.reused <= self.n_prompt

    @property
    def asked(self) -> int:
        """Tokens of the prompt that were reused or read: not all of it if the client went."""
        return self.reused + self.read if self.cancelled and self.read >= 0 else self.n_prompt


@dataclass(slots=True)
class Slot:
    """What is known of a slot: its request, the one before, and what happened since. `last`: that was given without its
    text, while the log is live.

    over       task of the request before, or of a child (`n` > 1): what is still printed of it is of no other request
    unsaved    `prepared` before the slot was saved to a file, or restored
    """

    current: Request | None = None
    last: Request | None = None
    over: int = -1
    held: int = -1
    used: bool = False
    prepared: str = ""
    unsaved: str = ""
    prompt: Prompt | None = None
    has_body: bool = False
    n_prompt: int = -1
    thought: bool = False


@dataclass(slots=True)
class Choice:
    """What the server said before it started a request."""

    slot: int = -1
    how: str = ""
    sim: float = -1.0
    keep: float = -1.0
    threshold: float = -1.0
    same: dict[int, tuple[int, int]] = field(default_factory=dict)
    busy: set[int] = field(default_factory=set)
    loaded: float = -1.0
    dropped: int = 0
    load_failed: bool = False

    def goes_on(self, event: Event) -> bool:
        """Whether the event is of this choice. The server looks at each slot once."""
        is_look = event.kind in (Kind.SIMILARITY, Kind.BUSY)
        is_again = is_look and (event.slot in self.same or event.slot in self.busy)
        if is_again or len(self.same) + len(self.busy) > 2 * MOST_SLOTS:
            return False
        return not self.how or (is_look and self.how == "id" and self.slot == event.slot)

    def learn(self, event: Event) -> None:
        """Apply what the server says of a slot: that it looks at it, or takes it."""
        match event.kind:
            case Kind.SIMILARITY:
                self.same[event.slot] = (event.number("same"), event.number("n"))
                self.threshold = event.real("threshold")
            case Kind.BUSY:
                self.busy.add(event.slot)
            case kind:
                self.slot = event.slot
                self.how = {Kind.BY_SIMILARITY: "similarity", Kind.BY_AGE: "age"}.get(kind, "id")
                self.sim = event.real("sim_best", event.real("sim"))
                self.keep = event.real("keep")
                self.threshold = event.real("threshold", self.threshold)


_ROUNDED: Final = 0.001
"""Of a share with three digits, at most."""


def _compare(r: Request) -> None:
    """The first difference from what the slot held; of a prompt that was not read to its end, its length too."""
    if r.same < 0 < r.against and r.window >= 0:
        r.same = r.against + r.window
    if r.n_prompt < 0 and r.same < 0 < r.held and r.cancelled and r.keep > 0 < r.sim:
        r.same = round(r.keep * r.held)
        r.n_prompt, r.is_rounded = round(r.same / r.sim), True
        r.levels.discard(4)  # at which it is printed: other lines may be missing too


def complete(request: Request, held: int) -> None:
    """What follows from the other numbers: llama-server does not print all of them below level 4.

    held    tokens in the slot at the end: the prompt and all generated tokens but the last, which was not decoded
    """
    r = request
    if r.n_prompt < 0 and held > 0 and r.generated > 0 and r.shifted < 0 and not r.truncated:
        r.n_prompt, r.is_rounded = held - r.generated + 1, r.has_drafts
    if r.reused < 0:
        r.reused = r.begins
    _compare(r)
    if r.n_prompt < 0 and r.reused >= 0 and r.read >= 0:
        r.n_prompt = r.reused + r.read
    if r.reused < 0 and r.n_prompt >= 0 and 0 <= r.read <= r.n_prompt:
        r.reused = r.n_prompt - r.read
    if r.cancelled and r.read < 0 and r.generated < 0 and r.has_numbers and held >= 0:
        r.read = max(0, min(held, r.n_prompt) - r.reused)
    if r.read < 0 and r.has_numbers and not (r.error or r.cancelled):
        r.read = r.n_prompt - r.reused
    if r.same < 0 and r.sim >= 0 and r.n_prompt > 0:
        r.same, r.is_rounded = round(r.sim * r.n_prompt), True
    if _is_from_memory(r):
        r.loaded, r.held, r.prompt_before, r.before = r.reused / r.n_prompt, -1, -1, None
    is_printed = bool(r.levels & {0, 4}) and not (r.forced or r.invalidated) and r.restored < 0
    if r.same < 0 < r.reused and (r.how == "age" or is_printed):  # similarity is printed for similar prompts alone
        r.same = r.reused
    if r.keep > 0 and r.same >= 0 and (r.held < 0 or _is_of_another(r)):
        r.held, r.is_rounded = round(r.same / r.keep), True


def _is_from_memory(r: Request) -> bool:
    """Whether a saved prompt was loaded, which is printed at level 4: the oldest slot is used if none is similar."""
    is_silent = r.how == "age" and r.loaded < 0 and 4 not in r.levels and r.server.ram_mib != 0
    return is_silent and r.reused > max(r.server.similarity * r.n_prompt, 0)


def _is_of_another(r: Request) -> bool:
    """Whether `held` contradicts what the server printed: the slot of another server, whose lines are among these."""
    return abs(r.keep * r.held - r.same) > _ROUNDED * (r.held + max(r.n_prompt, 0)) + 1
