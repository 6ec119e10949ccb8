"""The requests of a log, put together from its events: which slot each got, what that held, what was read again.

Owns the state of slots between requests, bounded however long the log is. Must never know causes.
"""

import re
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from kvdesk.cache.reuse.prompt_change import LONGEST, Prompt, followed, has_reasoning, prompt_of_json, prompt_of_text
from kvdesk.engine_log.events import DEFAULT_LEVEL, Event
from kvdesk.engine_log.other_programs import LLAMA_CPP_PYTHON, is_same, left_by, program_of, take_kobold, take_lookup
from kvdesk.engine_log.record import MOST_SLOTS, Choice, Request, Server, Slot, complete
from kvdesk.engine_log.sentences import AT_BEGIN, Kind
from kvdesk.engine_log.waiting import Waiting
from kvdesk.loose_json import object_in, text_in

MOST_WAITING: Final = 64
"""Requests that have ended and wait for their texts."""
MOST_LATEST: Final = 8
"""Prompts that have ended and may go on in another slot."""
MOST_CHARS: Final = 64 << 20
"""Characters of all prompts that are remembered."""
_ANSWERS: Final = re.compile(r"completion|/messages$|/responses$|/infill|/api/(?:chat|generate|embed)|embedding|rerank")
"""Paths whose requests get a slot."""
_REASONED: Final = re.compile(r'"reasoning_content":\s*"[^"]')
_Handler = Callable[[Event], list[Request] | None]
"""Gives the requests that an event completes."""


class RequestReader:
    """Feed it events, get the requests that are complete. `server` is what is known so far.

    is_live   a request is complete when it ends, also where its text may come later
    late      those whose text came later and shows which request of another slot they follow; take them
    """

    def __init__(self, is_live: bool = False) -> None:
        self.server = Server()
        self.late: list[Request] = []
        self._is_live, self._has_done = is_live, False
        self._slots: dict[int, Slot] = {}
        self._choice = Choice()
        self._waiting = Waiting()
        self._timed: Request | None = None
        self._started: Request | None = None  # last of all
        self._last_done = ""  # whose body comes next
        self._cut_from = -1
        self._latest: deque[tuple[int, Prompt]] = deque(maxlen=MOST_LATEST)  # with their slots, the latest first
        self._is_loaded_again = False  # a model, after requests
        self._n_chars = 0  # of the prompts that are remembered, some of them twice
        self._handlers = self._all_handlers()

    def feed(self, event: Event) -> list[Request]:
        """The requests that this event completes, in order of their end."""
        self.server.level = max(self.server.level, event.level)
        self.server.n_lines = event.line
        found = self._handlers[event.kind](event) or []
        if len(self._waiting) > MOST_WAITING:
            found += self._waiting.take(1)
        return self._compared(found)

    def close(self) -> list[Request]:
        """What is still open at the end of the log."""
        for slot in self._slots.values():
            if slot.current is not None:
                complete(slot.current, -1)
                self._waiting.add(slot.current)
        self._slots.clear()
        return self._compared(self._waiting.take_all())

    def _compared(self, found: list[Request]) -> list[Request]:
        """The requests, each with the earlier one of another slot that it follows, where texts show that."""
        for request in found:
            if request.prompt is None:
                continue
            if request.how == "age" and request.loaded < 0:
                alike = [one for _, one in self._latest if one.is_rendered == request.prompt.is_rendered]
                best = followed(alike, request.prompt)
                if best is not None and all(one is not best[0] or at != request.slot for at, one in self._latest):
                    before, shared = best
                    request.follows = before, (shared.common + shared.again) / max(shared.n, 1)
            self._latest.appendleft((request.slot, request.prompt))
        return found

    def _all_handlers(self) -> dict[Kind, _Handler]:
        k = Kind
        by_handler: dict[_Handler, tuple[Kind, ...]] = {
            self._on_choice: (k.SIMILARITY, k.BUSY, k.BY_SIMILARITY, k.BY_AGE, k.BY_ID),
            self._on_ram: (k.LOADED, k.LOAD_FAILED, k.DROPPED),
            self._on_cleared: (k.CLEARED, k.PURGED, k.ADAPTERS, k.EVICTED),
            self._on_state_read: (k.STATE_READ,),
            self._on_launching: (k.LAUNCHING,),
            self._on_started: (k.STARTED,),
            self._on_numbers: (k.PROMPT, k.PREFIX, k.CACHED, k.DRAFTED),
            self._on_times: (k.TIMES,),
            self._on_timing: (k.EVALUATED, k.GENERATED),
            self._on_checkpoint: (k.FORCED, k.CHECKED, k.RESTORED, k.CREATED, k.INVALIDATED, k.ERASED),
            self._on_slot_fact: (k.SHIFTED, k.CHUNK, k.REUSE_OFF, k.NO_ROOM, k.OLD_TEXT, k.NEW_TEXT),
            self._on_stopped: (k.STOPPED,),
            self._on_error: (k.ERROR, k.CANCELLED),
            self._on_done: (k.DONE,),
            self._on_body: (k.BODY,),
            self._on_response: (k.RESPONSE,),
            self._on_lookup: (k.LOOKUP, k.LOOKUP_FORCED, k.SUMMARY, k.TABBY, k.OMLX),
            self._on_kobold: (k.KOBOLD_READS, k.KOBOLD_ENDED, k.KOBOLD_LOADED),
            self._on_truncated: (k.TRUNCATED, k.MESSAGES_DROPPED),
            self._on_load: (k.LOADING,),
        }
        found = {kind: handler for handler, kinds in by_handler.items() for kind in kinds}
        return {kind: found.get(kind, self.server.learn) for kind in k}

    # -- slots and requests

    def _slot(self, number: int) -> Slot:
        slot = self._slots.get(number)
        if slot is None:
            if len(self._slots) >= MOST_SLOTS:
                self._slots.clear()  # no server has that many: what was read is no log of one
            slot = self._slots[number] = Slot()
        return slot

    def _new(self, slot: int, task: int, event: Event) -> Request:
        return Request(slot, task, event.line, event.clock, after_load=self._is_loaded_again, server=self.server)

    def _request(self, event: Event) -> Request | None:
        """The request of a line, begun where the log begins in its middle, or lacks the lines between two."""
        if event.slot < 0:
            return self._timed if event.kind is not Kind.PREFIX or self._only_current() is None else self._started
        slot = self._slot(event.slot)
        if event.task >= 0 and event.task == slot.over:
            return None
        if slot.current is not None and 0 <= slot.current.task != event.task >= 0:
            if event.task < slot.current.task:  # of another program, whose lines are among these
                return None
            self._end(slot, -1)
        if slot.current is None and event.task >= 0:
            slot.current = self._new(event.slot, event.task, event)
        current = slot.current
        if current is not None:
            current.levels.add(event.level)
            current.has_begin |= event.kind in AT_BEGIN
        return current

    def _on_choice(self, event: Event) -> None:
        """The server looks at one slot after another, and again for a task that waited for one."""
        if not self._choice.goes_on(event):
            self._choice = Choice()
        self._choice.learn(event)
        if self._choice.threshold > 0:
            self.server.similarity = self._choice.threshold

    def _on_ram(self, event: Event) -> None:
        c, kind = self._choice, event.kind
        if kind is Kind.LOADED:
            c.loaded = event.real("sim", 0.0)
        elif kind is Kind.LOAD_FAILED:
            c.loaded, c.load_failed = -1.0, True
        else:
            of: Request | Choice = self._started if not c.how and self._started is not None else c
            of.dropped += 1  # also for idle slots, which are saved when a request has started
            self.server.n_dropped += 1
            self.server.dropped_mib += event.real("mib", 0.0)

    def _on_cleared(self, event: Event) -> None:
        slot = self._slot(event.slot)
        prepared = {Kind.PURGED: "purged", Kind.ADAPTERS: "adapters", Kind.EVICTED: "purged"}.get(event.kind, "cleared")
        if prepared != "cleared" or slot.prepared != "purged":  # at level 4, both are said of one slot
            slot.prepared = prepared
        if event.kind is not Kind.EVICTED:
            slot.held, slot.n_prompt, slot.prompt, slot.has_body = 0, -1, None, False

    def _on_state_read(self, event: Event) -> None:
        """A state was put into a slot: a saved prompt or a checkpoint, said before, else a slot file."""
        slot = self._slot(event.slot)
        if slot.current is None and self._choice.slot < 0:
            slot.prepared, slot.held = "restored", event.number("n")

    def _on_launching(self, event: Event) -> None:
        """The server prints the slot as its last request left it: that one's text, if no body has come."""
        slot = self._slot(event.slot)
        found = object_in(event.values["json"])
        text = found.get("prompt")
        last = next((r for r in reversed(self._waiting) if r.slot == event.slot), None)
        slot.thought |= has_reasoning(text_in(found.get("generated")))
        if isinstance(text, str) and text and not slot.has_body:
            slot.prompt = self._remembered(prompt_of_text(text))
            if last is not None and last.task == found.get("id_task"):
                last.prompt = slot.prompt
            if slot.last is not None and slot.last.task == found.get("id_task"):
                slot.last.prompt = slot.prompt
                self.late += [one for one in self._compared([slot.last]) if one.follows is not None]
        slot.last = None

    def _on_started(self, event: Event) -> list[Request]:
        if event.slot < 0:
            return []  # the queue says the same of every task
        self.server.program = ""
        slot = self._slot(event.slot)
        found = self._finished(slot, -1)
        in_vain = [request for request in self._waiting.without_text() if request.slot == event.slot]
        found += self._waiting.take_whole(in_vain)
        if event.number("child", 0) == 1:  # gets the cells and the numbers of its parent, which reads the prompt
            slot.over, slot.prepared, slot.used = event.task, "", True
            slot.held, slot.n_prompt, slot.prompt, slot.has_body = 0, -1, None, False
            return found
        c = self._choice if self._choice.slot in (-1, event.slot) else Choice()
        self._choice = Choice()
        slot.over = -1
        request = self._new(event.slot, event.task, event)
        request.has_begin = True
        request.how, request.sim, request.keep, request.threshold = c.how, c.sim, c.keep, c.threshold
        request.loaded, request.load_failed, request.dropped = c.loaded, c.load_failed, c.dropped
        request.prepared, request.held, request.before = slot.prepared, slot.held, slot.prompt
        request.has_earlier = any(one.used for one in self._slots.values())
        request.is_first, request.prompt_before, request.thought = not slot.used, slot.n_prompt, slot.thought
        if event.slot in c.same:
            request.same, request.n_prompt = c.same[event.slot]
        if c.loaded >= 0:  # its cells are those of another prompt now
            request.same = request.held = request.prompt_before = -1
            request.sim, request.keep, request.before = c.loaded, -1.0, None
        others = [(same, number) for number, (same, _) in c.same.items() if number != event.slot]
        if others and max(others)[0] > max(request.same, 0):
            request.elsewhere = (max(others)[1], max(others)[0], False)
        elif c.busy and c.how == "age":
            request.elsewhere = (min(c.busy), -1, True)
        request.levels.add(event.level)
        slot.current, slot.prepared, slot.used, slot.has_body, slot.thought = request, "", True, False, False
        self._started = request
        return found

    def _on_numbers(self, event: Event) -> None:
        request = self._request(event)
        if request is None:
            return
        kind, n = event.kind, event.number("n")
        if kind is Kind.PROMPT:
            request.n_prompt = n
        elif kind is Kind.PREFIX:
            request.same, request.held = event.number("same"), event.number("held")
            request.window = event.number("window")
        elif kind is Kind.CACHED and request.reused < 0 and request.read < 0:
            request.reused = n if request.has_begin or n == 0 else -1  # it is said of each piece of a prompt
        elif kind is Kind.EVALUATED:
            request.read, request.prompt_ms = n, event.real("ms")
            self.server.ms_per_token = request.prompt_ms / n if n > 0 else self.server.ms_per_token
        elif kind is Kind.GENERATED:
            request.generated, request.generated_ms = n, event.real("ms")
        elif kind is Kind.DRAFTED:
            request.has_drafts, request.accepted = True, event.real("share")

    def _on_times(self, event: Event) -> None:
        """The next times, which have no head, are of this request. It may have ended."""
        known = (*self._waiting, self._slot(event.slot).current)
        of_task = (one for one in known if one is not None and (one.slot, one.task) == (event.slot, event.task))
        self._timed = next(of_task, None) or self._request(event) or self._new(event.slot, event.task, event)

    def _on_timing(self, event: Event) -> list[Request]:
        """Times without a head belong to the slot named last; llama-cpp-python has no slots at all."""
        found: list[Request] = []
        if event.slot < 0:
            self._timed = self._timed or self._only_current()
            if event.kind is Kind.EVALUATED and not self.server.level and _is_over(self._timed):
                found, slot = self._finished(self._slot(0), -1), self._slot(0)
                self._timed = slot.current = self._new(0, -1, event)
                self._timed.is_first, slot.used = not slot.used, True
        else:
            self._timed = None
        self._on_numbers(event)
        if event.kind is Kind.GENERATED and (timed := self._timed) is not None:
            self._timed = None
            if any(timed is one for one in self._waiting):
                complete(timed, self._slot(timed.slot).held)
        if self.server.program == LLAMA_CPP_PYTHON and event.kind is Kind.GENERATED and 0 in self._slots:
            return self._finished(self._slots[0], -1)
        return found

    def _only_current(self) -> Request | None:
        open_ones = [slot.current for slot in self._slots.values() if slot.current is not None]
        return open_ones[-1] if open_ones else None

    def _on_checkpoint(self, event: Event) -> None:
        request = self._request(event)
        if request is None:
            return
        kind = event.kind
        if kind is Kind.FORCED:
            request.forced = True
        elif kind is Kind.CHECKED:
            request.checked += 1
            request.against = event.number("against")
            if event.number("first") == event.number("last") > 0:  # a recurrent state has one position
                self.server.memory = "recurrent"
        elif kind is Kind.RESTORED:
            request.restored = event.number("n", event.number("last") + 1)
        elif kind is Kind.CREATED:
            request.created += 1
            request.created_mib += event.real("mib", 0.0)
        elif kind is Kind.INVALIDATED:
            request.invalidated += 1
            request.held = max(request.held, event.number("last") + 1)
            request.begins, request.window = event.number("next"), event.number("window", request.window)
        else:
            request.erased += 1

    def _on_slot_fact(self, event: Event) -> None:
        request = self._request(event) if event.slot >= 0 else self._only_current()
        if request is None:
            self.server.no_room += event.kind is Kind.NO_ROOM
            return
        kind = event.kind
        if kind is Kind.NO_ROOM:  # of the batch of all that run
            for slot in self._slots.values():
                if slot.current is not None:
                    slot.current.no_room = True
        elif kind is Kind.SHIFTED:
            request.shifted = max(request.shifted, 0) + event.number("n", event.number("discard", 0))
        elif kind is Kind.CHUNK:
            request.chunks += event.number("n", 0)
        elif kind is Kind.REUSE_OFF:
            request.reuse_off = event.number("n")
        elif kind is Kind.OLD_TEXT:
            request.old = event.values["text"]
        elif kind is Kind.NEW_TEXT:
            request.new = event.values["text"]

    def _on_stopped(self, event: Event) -> list[Request]:
        request = self._request(event)
        if request is None:
            return []
        request.ended, request.truncated = True, event.number("truncated", 0) > 0
        return self._finished(self._slot(event.slot), event.number("n"))

    def _on_error(self, event: Event) -> None:
        for slot in self._slots.values():
            if slot.current is not None and slot.current.task == event.task:
                if event.kind is Kind.CANCELLED:
                    slot.current.cancelled = True
                else:
                    slot.current.error = event.values["what"]

    def _end(self, slot: Slot, held: int) -> None:
        """Takes the request out of its slot. What it says only together is computed here."""
        request, slot.current = slot.current, None
        if request is None:
            return
        complete(request, held)
        if held < 0 and request.task < 0 and not self.server.level:
            held = left_by(request)
        slot.held, slot.n_prompt, slot.over = held, request.n_prompt, request.task
        slot.prepared = "shifted" if request.shifted > 0 else ""
        if self._timed is request:
            self._timed = None
        self._waiting.add(request)
        slot.last = request if self._is_live else None

    def _finished(self, slot: Slot, held: int) -> list[Request]:
        """The requests that are complete when that of a slot has ended."""
        if slot.current is None:
            return []
        self._end(slot, held)
        is_told_later = self._has_done if self._is_live else self.server.level > DEFAULT_LEVEL
        return self._waiting.take_all() if self.server.program or not is_told_later else []

    # -- texts

    def _on_done(self, event: Event) -> list[Request]:
        path, status, self._has_done = event.values.get("path", ""), event.number("status"), True
        self._last_done = ""
        if "time" in event.values:  # a line of Ollama's own server
            self.server.inside = "Ollama"
        if path.startswith("/slots/"):
            number = path.removeprefix("/slots/").split("?")[0]
            if number.isdecimal() and len(number) < 4 and status == HTTPStatus.OK:
                slot = self._slot(int(number))
                if slot.prepared != "file":
                    slot.unsaved, slot.prepared = slot.prepared, "file"  # the response says which, if it is in the log
            return []
        if not _ANSWERS.search(path):
            return []
        waiting = (request for request in self._waiting.without_text() if not request.path)
        if status >= HTTPStatus.BAD_REQUEST:  # most of those that are refused never had a slot
            waiting = (request for request in waiting if request.error)
        request = next(waiting, None)
        if request is None and status >= HTTPStatus.BAD_REQUEST:
            return []
        self._last_done = path
        if request is not None:
            request.path, request.status = path, status
        return self._waiting.take_all() if self.server.level < 5 else []

    def _on_body(self, event: Event) -> None:
        path = self._last_done
        if not path or not (body := object_in(event.values["json"])):
            return
        request = next((r for r in self._waiting.without_text() if r.prompt is None and r.path in ("", path)), None)
        if request is None:
            return
        request.prompt = self._remembered(prompt_of_json(body))
        if self._is_live and path.endswith("chat/completions") and len(event.values["json"]) <= LONGEST:
            request.body = event.values["json"]
        if isinstance(flag := body.get("cache_prompt"), bool):
            request.cache_prompt = flag
        if request.prompt is not None:
            slot = self._slot(request.slot)
            slot.prompt, slot.has_body = request.prompt, True

    def _on_response(self, event: Event) -> list[Request]:
        answer = object_in(event.values["json"])
        if "n_restored" in answer and isinstance(number := answer.get("id_slot"), int):
            n = answer["n_restored"]
            self._slot(number).prepared = "restored"
            self._slot(number).held = n if isinstance(n, int) and n < 1 << 31 else -1
        elif answer.keys() & {"n_saved", "n_erased"} and isinstance(number := answer.get("id_slot"), int):
            slot = self._slot(number)
            slot.prepared = "cleared" if "n_erased" in answer else slot.unsaved if slot.prepared == "file" else ""
        if not self._last_done:
            return []
        ready = [request for request in self._waiting.without_text() if request.path]
        if len(ready) == 1 and _REASONED.search(event.values["json"]):
            self._slot(ready[0].slot).thought = True
        return self._waiting.take_whole(ready)

    def _remembered(self, prompt: Prompt | None) -> Prompt | None:
        """The prompt. All earlier ones are forgotten where together they are too long."""
        self._n_chars += sum(len(part.text) for part in prompt.parts) if prompt is not None else 0
        if self._n_chars > MOST_CHARS:
            self._n_chars = 0
            self._latest.clear()
            for slot in self._slots.values():
                slot.prompt = None
                if slot.current is not None:
                    slot.current.before = None
            for request in self._waiting:
                request.prompt = request.before = None
        return prompt

    # -- other programs

    def _on_lookup(self, event: Event) -> list[Request]:
        """Ollama's runners, llama-cpp-python, LM Studio, TabbyAPI and oMLX say all in one line."""
        number = max(event.slot, 0)
        slot, program = self._slot(number), program_of(event)
        if not program:
            return []
        self.server.program = program
        if slot.current is not None and is_same(slot.current, event):
            take_lookup(slot.current, event)
            return []
        found = self._finished(slot, -1)
        request = self._new(number, -1, event)
        request.held = slot.held if program == LLAMA_CPP_PYTHON else -1
        request.prompt_before, request.is_first = slot.n_prompt, not slot.used
        take_lookup(request, event)
        request.prepared, request.cut_from = slot.prepared, self._cut_from
        self.server.n_cut -= self._cut_from >= 0
        slot.current, slot.prepared, slot.used, self._cut_from = request, "", True, -1
        return found

    def _on_kobold(self, event: Event) -> list[Request]:
        slot, found = self._slot(0), list[Request]()
        self.server.program = program_of(event)
        if event.kind is not Kind.KOBOLD_ENDED and slot.current and -1 != slot.current.read != event.number("read"):
            found = self._finished(slot, -1)
        if slot.current is None:
            slot.current = self._new(0, -1, event)
            slot.current.is_first, slot.current.held, slot.used = not slot.used, slot.held, True
            slot.current.prompt_before = slot.n_prompt
            slot.current.levels.add(event.level)
        take_kobold(slot.current, event)
        if event.kind is Kind.KOBOLD_ENDED:
            self.server.ctx = event.number("ctx")
            found += self._finished(slot, event.number("used") - 1)
        return found

    def _on_truncated(self, event: Event) -> None:
        self._cut_from = event.number("prompt", 0)
        self.server.n_cut, self.server.cut_from = self.server.n_cut + 1, max(self.server.cut_from, self._cut_from)
        if "limit" in event.values or event.kind is Kind.MESSAGES_DROPPED:
            self.server.program = self.server.program or "Ollama"

    # -- the server

    def _on_load(self, event: Event) -> list[Request]:
        self.server.model = event.values["name"].split(" (version")[0].strip().strip("'")[:200]
        self.server.memory, self.server.full_window = "", False
        found = [request for slot in self._slots.values() for request in self._finished(slot, -1)]
        self._is_loaded_again |= any(slot.used for slot in self._slots.values())
        self._slots.clear()
        self._choice = Choice()
        return found + self._waiting.take_all()


def _is_over(timed: Request | None) -> bool:
    """Whether times that name no task are of another request."""
    return timed is None or (timed.task < 0 and timed.read >= 0 and timed.generated >= 0)
