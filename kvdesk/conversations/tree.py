"""The messages of a conversation as a tree: an answer made again and a question edited are branches. Pure values."""

from collections.abc import Iterable

from kvdesk.message import Message, MessageId, Role
from kvdesk.values import replace


class Tree:
    """All messages of one conversation, in the order they were made."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._begin(messages)

    def _begin(self, messages: Iterable[Message]) -> None:
        known = tuple(messages)
        self._messages: dict[MessageId, Message] = {}
        self._at_place: dict[tuple[MessageId | None, Role], list[MessageId]] = {}
        self._walked: tuple[MessageId | None, list[Message]] | None = None  # the branch asked for last, and its leaf
        for message in known:
            self.put(message)

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def order(self) -> tuple[MessageId, ...]:
        """All messages, in the order they were made."""
        return tuple(self._messages)

    def following(self, message: MessageId) -> list[Message]:
        """The messages that follow this one at once."""
        return [other for other in self._messages.values() if other.parent == message]

    @property
    def messages(self) -> tuple[Message, ...]:
        """Those of every branch, in the order they were made."""
        return tuple(self._messages.values())

    def get(self, message: MessageId | None) -> Message | None:
        return self._messages.get(message) if message is not None else None

    def put(self, message: Message) -> None:
        """Add a message, or replace what was known of it."""
        if message.id not in self._messages:
            self._at_place.setdefault((message.parent, message.role), []).append(message.id)
        self._messages[message.id] = message
        self._walked = None

    def discard(self, message: MessageId) -> None:
        """Forget a message that nothing follows."""
        known = self._messages.pop(message, None)
        if known is not None:
            self._at_place[known.parent, known.role].remove(message)
            self._walked = None

    def remove(self, message: MessageId) -> tuple[Message, ...]:
        """Forget a message; those that followed it follow the one before it. Returns these as they are now."""
        gone = self._messages.pop(message)
        followers = tuple(replace(follower, parent=gone.parent) for follower in self.following(message))
        self._messages.update((follower.id, follower) for follower in followers)
        self._begin(self._messages.values())
        return followers

    def put_back(self, messages: Iterable[Message], order: Iterable[MessageId]) -> None:
        """Messages that were removed, and their followers, as they were. `order`: of all messages at that time."""
        known = self._messages | {message.id: message for message in messages}
        names = dict.fromkeys((*order, *known))
        self._begin(known[name] for name in names if name in known)

    def branch(self, leaf: MessageId | None) -> list[Message]:
        """The messages that end with `leaf`, oldest first; those of the newest message if there is no such leaf."""
        if self._walked is not None and self._walked[0] == leaf:
            return list(self._walked[1])
        at = leaf if leaf in self._messages else next(reversed(self._messages), None)
        found: list[Message] = []
        seen: set[MessageId] = set()
        while at is not None and at not in seen and (message := self._messages.get(at)) is not None:
            seen.add(at)
            found.append(message)
            at = message.parent
        found.reverse()
        self._walked = leaf, found
        return list(found)

    def siblings(self, message: MessageId) -> tuple[MessageId, ...]:
        """The messages that are at the same place, this one included, in the order they were made.

        Answers that were stopped before they said anything are no branch.
        """
        own = self._messages[message]
        others = (self._messages[name] for name in self._at_place[own.parent, own.role])
        return tuple(o.id for o in others if o.id == message or o.text or o.state != "stopped")

    def forks(self) -> dict[MessageId, tuple[MessageId, ...]]:
        """The siblings of every message that has others at its place."""
        several = (names for names in self._at_place.values() if len(names) > 1)
        found = {name: self.siblings(name) for names in several for name in names}
        return {name: siblings for name, siblings in found.items() if len(siblings) > 1}

    def tip(self, message: MessageId) -> MessageId:
        """The end of the newest branch that goes through a message."""
        newest = {other.parent: other.id for other in self._messages.values() if other.text or other.state != "stopped"}
        seen = {message}
        while (following := newest.get(message)) is not None and following not in seen:
            seen.add(following)
            message = following
        return message
