"""Measures a request until its first token: clocks, the load of other programs, pages read from the disk.

Runs on the engine's thread; takes about 0.1 ms per request. `policies.first_token` explains the result.
"""

import os
import time
from typing import Literal

from kvdesk.policies.first_token import Delay, first_token_reason
from kvdesk.policies.load import LoadMeter, major_faults


class FirstTokenClocks:
    """Starts when the request starts. `submitted_at`: time.perf_counter() when it was sent; `load_s`: seconds since
    then in which a model was loaded; `held_back`: it was tried before, and had to wait for others to end.
    """

    def __init__(self, submitted_at: float, load_s: float = 0.0, *, held_back: bool = False) -> None:
        self.submitted_at = submitted_at
        self.beside = False
        """Whether tokens of other requests were computed in the same batches."""
        self._load_s, self._held_back = load_s, held_back
        self._begun_at = self._rendered_at = self._acquired_at = time.perf_counter()
        self._saved: Literal["", "memory", "disk"] = ""
        self._usual_tok_s = 0.0
        self._faults = major_faults()
        self._meter = LoadMeter()
        self._meter.read(self._begun_at)

    def rendered(self) -> None:
        """The prompt is rendered and tokenized."""
        self._rendered_at = self._acquired_at = time.perf_counter()

    def acquired(self, saved: Literal["", "memory", "disk"], usual_tok_s: float) -> None:
        """The beginning of the prompt is in the cache. `saved`: where its state was. The rest is usually read at
        `usual_tok_s`, 0.0 if unknown.
        """
        self._acquired_at, self._saved, self._usual_tok_s = time.perf_counter(), saved, usual_tok_s

    def reason(self, n_read: int, prefill_s: float) -> str:
        """The reason for the time of the first token, which was just sampled. `n_read` tokens of the prompt were read
        in batches that took `prefill_s`.
        """
        now = time.perf_counter()
        waited_s = max(0.0, self._begun_at - self.submitted_at - self._load_s)
        tok_s = n_read / prefill_s if prefill_s else 0.0
        delay = Delay(
            all_s=now - self.submitted_at,
            n_read=n_read,
            tok_s=tok_s,
            usual_tok_s=self._usual_tok_s,
            queue_s=waited_s if self._held_back else 0.0,
            load_s=self._load_s,
            wait_s=0.0 if self._held_back else waited_s,
            saved=self._saved,
            restore_s=self._acquired_at - self._rendered_at if self._saved else 0.0,
            prompt_s=self._rendered_at - self._begun_at,
            beside=self.beside,
            others=self._meter.read(now),
            n_processors=os.cpu_count() or 1,
            n_faults=major_faults() - self._faults,
        )
        return first_token_reason(delay)
