"""Saved states of conversations, in memory and on disk. They are only a cache: losing one costs a prefill.

Owns the files and their index. A file is loaded only when the index has its digest, and written as `.part`, flushed,
then renamed. Files are written and removed in a separate thread; everything else runs on the engine's thread.
"""

import logging
import threading
import time
import zlib
from array import array
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from kvdesk.backends.local.cache_manager import saved_state
from kvdesk.backends.local.cache_manager.sequences import ALL_EXACT
from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.cache.state.blob import Blob
from kvdesk.codec import decode, encode
from kvdesk.message import ConversationId, MessageId
from kvdesk.policies.checkpoints import Checkpoint
from kvdesk.policies.swap import Limits, Placement, StateInfo, StateKind, over_limit, over_limit_at_the_end
from kvdesk.protocol.cache import MessageSpan
from kvdesk.protocol.chat import Client
from kvdesk.values import replace
from kvdesk.whole_file import write_whole

_log = logging.getLogger(__name__)
_TRIAL = 1 << 20  # bytes that are compressed to see whether it pays
_PAYS = 0.8
NOBODY: Final = ConversationId("")
"""The conversation of a document's state, which its `chats` share."""


class SavedStateStore:
    """All saved states that fit the current model and context. `folder` None: memory only.

    Raises nothing: a file that cannot be written or read is forgotten and noted in the log.
    """

    def __init__(self, folder: Path | None, kind: StateKind, limits: Limits) -> None:
        self._folder = folder
        self.kind = kind
        self.limits = limits
        self._saved: dict[str, saved_state.SavedState] = {}
        self._n_uses = 0  # uses of all states ever, continued from the highest number in the folder
        self._foreign: dict[str, _Foreign] = {}  # of other models and settings, by key
        self._writing: dict[str, Blob] = {}  # states on their way to disk, by key
        self._lock = threading.RLock()  # of `_saved` and `_writing`
        self._writer: ThreadPoolExecutor | None = None
        if folder is not None:
            self._read_index(folder)
            self.set_limits(limits)

    # --- read-only ----------------------------------------------------------------------------------------------------

    def values(self, client: Client | None = None) -> list[StateInfo]:
        """What the policies judge: all states, or those of this program's earlier requests."""
        now_s = time.monotonic()
        return [
            StateInfo(
                key=s.key,
                tier="disk" if s.blob is None else "memory",
                n_bytes=s.n_bytes,
                age=self._age(s),
                prefill_ms=s.prefill_ms,
                stays_in_memory=s.checkpoint or s.client != "",
                idle_s=now_s - s.used_s,
            )
            for s in (self._all() if client is None else self.of_client(client))
        ]

    def all_of(self, conversation: ConversationId) -> list[saved_state.SavedState]:
        """All states of the conversation, including checkpoints."""
        return [s for s in self._all() if s.conversation == conversation]

    def of(self, conversation: ConversationId) -> saved_state.SavedState | None:
        """The newest state of the conversation that is no checkpoint."""
        mine = [s for s in self.all_of(conversation) if not s.checkpoint]
        return max(mine, key=lambda s: s.used, default=None)

    def of_client(self, client: Client) -> list[saved_state.SavedState]:
        """States of this program's earlier requests."""
        return [s for s in self._all() if (s.client, s.sharing) == client.program]

    def has(self, tokens: Sequence[int], conversation: ConversationId, exact: int) -> bool:
        """Whether exactly these tokens are saved, other than as a checkpoint."""
        saved = self._saved.get(saved_state.key_of(self.kind, tokens, conversation, exact))
        return saved is not None and not saved.checkpoint

    def document(self, tokens: Sequence[int]) -> saved_state.SavedState | None:
        """The state of the document with exactly these tokens."""
        return self._saved.get(saved_state.key_of(self.kind, tokens, NOBODY, ALL_EXACT))

    def in_memory(self) -> list[saved_state.SavedState]:
        """The states whose bytes are in memory, including checkpoints."""
        return [s for s in self._all() if s.blob is not None]

    def of_kind(self, kind: StateKind) -> list[saved_state.SavedState]:
        """The states in the folder that are of another kind, for `read`."""
        wanted = decode(dict[str, Any], encode(kind))
        return [foreign.saved for foreign in self._foreign.values() if foreign.row["kind"] == wanted]

    def read(self, saved: saved_state.SavedState) -> Blob | None:
        """The bytes of a state in the folder; None if the file is missing or has changed."""
        return None if self._folder is None else saved_state.read_state(self._folder, saved)

    def checkpoints(self) -> list[Checkpoint]:
        """What the policy for checkpoints judges."""
        return [
            Checkpoint(s.key, s.conversation, len(s.tokens) - self._kept_before(s), s.n_bytes, self._age(s))
            for s in self._all()
            if s.checkpoint
        ]

    def longest_whole(
        self, prompt: Sequence[int], whose: ConversationId | None = None, sharing: str = "", block: int = 1
    ) -> saved_state.SavedState | None:
        """The longest saved state that `prompt` begins with as a whole. Arguments as in `longest_prefix`."""
        wanted = tuple(prompt)
        whose = whose if block == 1 else None  # nothing that is not exact
        fitting = [s for s in self._beginnings() if len(s.tokens) <= len(wanted) and s.may_go_to(whose, sharing)]
        fitting = [s for s in fitting if not len(s.tokens) % block]
        fitting.sort(key=lambda s: -len(s.tokens))
        return next((s for s in fitting if s.tokens == wanted[: len(s.tokens)]), None)

    def longest_prefix(
        self, prompt: Sequence[int], whose: ConversationId | None = None, sharing: str = "", block: int = 1
    ) -> tuple[saved_state.SavedState | None, int]:
        """The saved state that has the most leading tokens in common with `prompt`, and how many.

        whose: the conversation whose moved tokens may be used; None: only states as a prefill makes them. sharing: the
               `Client.sharing` of the request. block: as `Context.block`; above 1 only whole exact states count, of any
               conversation
        """
        best, most = None, 0
        wanted = array("i", prompt)
        for saved in self._beginnings():
            if not (saved.may_go_to(whose, sharing) if block == 1 else saved.sharing == sharing):
                continue
            held = array("i", saved.tokens[: len(wanted)])
            n = common_prefix(held, wanted)
            if block > 1:
                n = min(n, saved.exact) // block * block
            if n > most:
                best, most = saved, n
        return best, most

    def named(self) -> dict[ConversationId, set[MessageId]]:
        """The chats with anything in the folder, and the messages that it was computed from."""
        found: dict[ConversationId, set[MessageId]] = {}
        for saved in (*self._all(), *(foreign.saved for foreign in self._foreign.values())):
            if saved.chats:
                for chat, message in zip(saved.chats, saved.messages, strict=True):
                    found.setdefault(chat, set()).add(message)
            elif not saved.client:
                found.setdefault(saved.conversation, set()).update(saved.computed_from)
        return found

    def conversations(self) -> tuple[tuple[ConversationId, int], ...]:
        """The chats with saved states and the bytes of each, without checkpoints and documents."""
        return tuple((s.conversation, s.n_bytes) for s in self._beginnings() if not (s.checkpoint or s.client))

    def clients(self) -> list[tuple[str, int]]:
        """The program and bytes of each state of an earlier request."""
        return [(s.client, s.n_bytes) for s in self._all() if s.client]

    @property
    def memory_bytes(self) -> int:
        """Bytes of the states in memory, including checkpoints but not those being written to disk."""
        return sum(s.n_bytes for s in self._all() if s.blob is not None)

    @property
    def writing_bytes(self) -> int:
        """Bytes of states being written to disk: still in memory, but not counted against its limit."""
        with self._lock:
            return sum(len(blob) for blob in self._writing.values())

    # --- changes ------------------------------------------------------------------------------------------------------

    def put(
        self,
        placement: Placement,
        conversation: ConversationId,
        tokens: Sequence[int],
        blob: Blob,
        prefill_ms: float,
        *,
        texts: tuple[str, ...] = (),
        spans: tuple[MessageSpan, ...] = (),
        exact: int = ALL_EXACT,
        checkpoint: bool = False,
        client: Client | None = None,
        first: int = 0,
        chats: tuple[ConversationId, ...] = (),
        messages: tuple[MessageId, ...] = (),
        rounded: bool = False,
    ) -> None:
        """Save a state where `placement` says, after dropping what it lists. An older state of the same conversation
        that is a part of it is dropped, unless one of both is a checkpoint, or it is a document of `chats`.
        """
        self.drop(placement.drop)
        for key in placement.demote:
            self._to_disk(self._saved[key])
        if placement.to == "nowhere":
            return
        tokens = tuple(tokens)
        key = saved_state.key_of(self.kind, tokens, conversation, exact)
        alone = checkpoint or bool(chats)
        mine = [s for s in self._all() if s.conversation == conversation and not (s.checkpoint or alone)]
        self.drop([key, *(s.key for s in mine if tokens[: len(s.tokens)] == s.tokens)])
        saved = saved_state.SavedState(
            key=key,
            conversation=conversation,
            tokens=tokens,
            n_bytes=len(blob),
            prefill_ms=prefill_ms,
            used=self._next_use(),
            texts=texts,
            spans=spans,
            digest="",
            packed=False,
            blob=blob,
            checkpoint=checkpoint,
            exact=exact,
            client=client.name if client is not None else "",
            sharing=client.sharing if client is not None else "",
            used_s=time.monotonic(),
            first=first,
            chats=chats,
            messages=messages,
            rounded=rounded,
        )
        with self._lock:
            self._saved[key] = saved
        if placement.to == "disk":
            self._to_disk(saved)

    def take(self, saved: saved_state.SavedState) -> Blob | None:
        """The state's bytes; None if the file is missing or has changed, and then the state is forgotten."""
        with self._lock:  # its writer may have finished since `saved` was asked for
            saved = self._saved.get(saved.key, saved)
            blob = self._writing.get(saved.key) if saved.blob is None else saved.blob
        if blob is not None:
            return blob
        blob = self.read(saved)
        if blob is None:
            self.drop([saved.key])
        return blob

    def adopt(self, saved: saved_state.SavedState, blob: Blob) -> None:
        """Keep these bytes, converted from a state of another kind or store, where the other was: in memory or on disk.
        Does nothing if its tokens are already saved here. States over the limits are dropped.
        """
        key = saved_state.key_of(self.kind, saved.tokens, saved.conversation, saved.exact)
        on_disk, self._n_uses = saved.blob is None, max(self._n_uses, saved.used)
        with self._lock:
            if key in self._saved:
                return
            self._saved[key] = replace(saved, key=key, n_bytes=len(blob), digest="", packed=False, blob=blob)
        if on_disk:
            self._to_disk(self._saved[key])
        self.set_limits(self.limits)

    def touch(self, saved: saved_state.SavedState) -> None:
        """Mark it as just used, so that others are dropped first."""
        with self._lock:
            if (known := self._saved.get(saved.key)) is not None:
                self._saved[saved.key] = replace(known, used=self._next_use(), used_s=time.monotonic())

    def drop(self, keys: Iterable[str]) -> None:
        """Forget these states and remove their files."""
        on_disk = False
        for key in tuple(keys):
            with self._lock:
                saved = self._saved.pop(key, None)
            if saved is not None and saved.blob is None:
                self._later(partial(self._unlink, key))
                on_disk = True
        if on_disk:
            self._later(self._write_index)

    def drop_of(self, conversation: ConversationId, messages: Collection[MessageId] | None = None) -> None:
        """Drop everything of a deleted conversation, or, of its deleted `messages`, what was computed from them."""
        self.drop([s.key for s in self._all() if s.conversation == conversation and s.has(messages)])
        foreign = [(key, foreign.saved) for key, foreign in self._foreign.items()]
        self._drop_foreign([key for key, s in foreign if s.conversation == conversation and s.has(messages)])

    def join(self, saved: saved_state.SavedState, conversation: ConversationId, message: MessageId) -> None:
        """The chat has this document too, in this message."""
        if conversation not in saved.chats:
            self._share(saved, (*zip(saved.chats, saved.messages, strict=True), (conversation, message)))

    def leave(self, conversation: ConversationId) -> None:
        """The chat has no document any more. What no other chat has is dropped."""
        for saved in self._all():
            if conversation in saved.chats:
                self._share(saved, saved.homes_without(conversation))
        mine = [(key, *foreign) for key, foreign in self._foreign.items() if conversation in foreign.saved.chats]
        for key, row, saved in mine:
            if homes := saved.homes_without(conversation):
                chats, messages = zip(*homes, strict=True)
                left = replace(saved, chats=chats, messages=messages)
                self._foreign[key] = _Foreign(row | {"chats": list(chats), "messages": list(messages)}, left)
                self._later(self._write_index)
            else:
                self._drop_foreign([key])

    def set_limits(self, limits: Limits) -> None:
        """Set new limits and drop the least valuable states above them."""
        self.limits = limits
        self.drop(over_limit(self.values(), limits))
        self._make_place()

    def close(self) -> None:
        """Write states that are only in memory, and wait for the disk. If space is short, drop the least valuable."""
        if self._folder is not None:
            stays = {s.key for s in self._all() if s.sharing}
            self.drop(over_limit_at_the_end([s for s in self.values() if s.key not in stays], self.limits))
            for saved in sorted(self._all(), key=lambda s: -s.used):
                if saved.blob is not None and not saved.sharing:
                    self._to_disk(saved)
        if self._writer is not None:
            self._writer.shutdown(wait=True)
            self._writer = None

    # --- private ------------------------------------------------------------------------------------------------------

    def _all(self) -> list[saved_state.SavedState]:
        with self._lock:
            return list(self._saved.values())

    def _beginnings(self) -> list[saved_state.SavedState]:
        """The states that a prompt may begin with: all but documents."""
        return [s for s in self._all() if not s.chats]

    def _share(self, saved: saved_state.SavedState, homes: tuple[tuple[ConversationId, MessageId], ...]) -> None:
        """These chats have the document now, each in this message."""
        if not homes:
            self.drop([saved.key])
            return
        chats, messages = zip(*homes, strict=True)
        with self._lock:
            if (known := self._saved.get(saved.key)) is not None:
                self._saved[saved.key] = replace(known, chats=chats, messages=messages)
        if known is not None and known.blob is None:
            self._later(self._write_index)

    def _next_use(self) -> int:
        self._n_uses += 1
        return self._n_uses

    def _age(self, saved: saved_state.SavedState) -> int:
        """Uses of any state since its last one, inclusive."""
        return self._n_uses - saved.used + 1

    def _kept_before(self, saved: saved_state.SavedState) -> int:
        """Length in tokens of the longest other state that `saved` begins with."""
        before = self.longest_whole(saved.tokens[:-1], sharing=saved.sharing)
        return 0 if before is None else len(before.tokens)

    def _disk_bytes(self) -> int:
        return sum(s.n_bytes for s in self._all() if s.blob is None)

    def _to_disk(self, saved: saved_state.SavedState) -> None:
        if self._folder is None or saved.blob is None:
            return
        with self._lock:
            self._writing[saved.key] = saved.blob
            self._saved[saved.key] = replace(saved, blob=None)
        self._later(lambda: self._write(saved.key))
        self._make_place()

    def _make_place(self) -> None:
        """Drop states of other models and settings, oldest first, to make room for this one's."""
        oldest = sorted(self._foreign.items(), key=lambda item: item[1].saved.used)
        over = self._disk_bytes() + sum(f.saved.n_bytes for _, f in oldest) - self.limits.disk_bytes
        leaving = []
        for key, foreign in oldest:
            if over <= 0:
                break
            leaving.append(key)
            over -= foreign.saved.n_bytes
        self._drop_foreign(leaving)

    def _drop_foreign(self, keys: list[str]) -> None:
        for key in keys:
            del self._foreign[key]
            self._later(partial(self._unlink, key))
        if keys:
            self._later(self._write_index)

    def _later(self, work: Callable[[], None]) -> None:
        if self._folder is None:
            return
        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, "kvdesk-states")
        self._writer.submit(_logged, work)

    def _write(self, key: str) -> None:
        """In the thread: write one state to its file, then the index that lists it."""
        assert self._folder is not None
        blob = self._writing.get(key)
        if blob is None:
            return  # it was saved twice, and is already written
        path = self._folder / f"{key}{saved_state.SUFFIX}"
        try:
            packed = len(zlib.compress(blob[:_TRIAL], 1)) < _PAYS * len(blob[:_TRIAL])
            data = zlib.compress(blob, 1) if packed else blob
            write_whole(path, data)
            digest = saved_state.digest_of(key, data)
            with self._lock:
                if key in self._saved:
                    self._saved[key] = replace(self._saved[key], digest=digest, packed=packed)
                del self._writing[key]
            self._write_index()
        except OSError as error:
            _log.warning("The state %s cannot be written: %s", key, error)
            with self._lock:
                self._saved.pop(key, None)
                self._writing.pop(key, None)
            _remove(path)  # the disk may be full

    def _unlink(self, key: str) -> None:
        assert self._folder is not None
        if key not in self._saved:  # else it was saved again in the meantime
            _remove(self._folder / f"{key}{saved_state.SUFFIX}")

    def _write_index(self) -> None:
        assert self._folder is not None
        rows = [foreign.row for foreign in tuple(self._foreign.values())]
        with self._lock:
            known = tuple(self._saved.values())
        rows += [saved_state.fields(saved) | {"kind": self.kind} for saved in known if saved.digest]
        write_whole(self._folder / saved_state.INDEX, encode(rows))

    def _read_index(self, folder: Path) -> None:
        """Load states that the index lists and that exist; remove files that it does not list."""
        rows: list[dict[str, Any]] = []
        is_whole = True  # else it is written again: what is left out must not stay in it
        try:
            folder.mkdir(parents=True, exist_ok=True)
            rows = saved_state.read_index(folder)
        except FileNotFoundError:
            pass  # the first start
        except (OSError, ValueError) as error:
            _log.info("No index of saved states: %s", error)
            is_whole = False
        named: set[str] = set()
        kind = decode(dict[str, Any], encode(self.kind))
        for row in saved_state.counted(rows):
            try:
                saved = saved_state.saved_of(row)
                ours = row["kind"] == kind and saved.key == saved_state.key_of(
                    self.kind, saved.tokens, saved.conversation, saved.exact
                )
            except (KeyError, ValueError, OverflowError) as error:
                _log.warning("An entry of the index of saved states cannot be read: %s", error)
                continue
            if not (folder / f"{saved.key}{saved_state.SUFFIX}").is_file():
                continue
            named.add(f"{saved.key}{saved_state.SUFFIX}")
            is_whole &= len(saved.texts) == len(row["texts"])
            self._n_uses = max(self._n_uses, saved.used)
            if ours:
                self._saved[saved.key] = saved
            else:
                self._foreign[saved.key] = _Foreign(row | {"texts": list(saved.texts)}, saved)
        for file in (*folder.glob(f"*{saved_state.SUFFIX}*"), *folder.glob(f"{saved_state.INDEX}.*")):
            if file.name not in named:
                _remove(file)
        if len(named) < len(rows) or not is_whole:
            _logged(self._write_index)


class _Foreign(NamedTuple):
    """A state that does not fit the current model or context: its row of the index, kept as it is."""

    row: dict[str, Any]
    saved: saved_state.SavedState


def _logged(work: Callable[[], None]) -> None:
    """Nobody looks at what it raises, such as a full disk's OSError."""
    try:
        work()
    except Exception:  # noqa: BLE001 - the thread's edge
        _log.exception("The folder of saved states could not be changed")


def _remove(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("%s cannot be removed: %s", file, error)
