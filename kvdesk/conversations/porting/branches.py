"""A tree of nodes, as most programs export it, to the messages of a conversation. Pure values.

Nodes without anything to show (roots, tool calls, hidden ones) go; what follows them follows what they followed.
Answers that follow one another without a branch, as programs with tools write them, become one.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from kvdesk.chat import Conversation
from kvdesk.conversations.porting.values import circle, items, message_id
from kvdesk.conversations.titles import propose_title
from kvdesk.graphemes import cut
from kvdesk.loose_json import obj
from kvdesk.message import Attachment, ConversationId, Message, MessageId, Role
from kvdesk.values import dataclass, field

TO_BE_CHOSEN = -1
"""The colour of a conversation that another program wrote: `adding` chooses one."""
MODEL_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Node:
    """One node. `text` is None if nothing is shown."""

    parent: str | None
    role: Role = "user"
    text: str | None = None
    created_ms: int = 0
    model: str = ""
    attachments: tuple[Attachment, ...] = ()


@dataclass(slots=True)
class _Record:
    """A message in the making: the texts of one or more nodes."""

    id: MessageId
    parent: MessageId | None
    node: Node
    texts: list[str] = field(default_factory=list)
    model: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a conversation beside its nodes."""

    id: ConversationId
    title: str = ""
    system_prompt: str = ""
    created_ms: int = 0
    updated_ms: int = 0
    pinned: bool = False
    archived: bool = False


def conversation_of(facts: Facts, nodes: Mapping[str, Node], current: str | None) -> Conversation:
    """The conversation with its messages; `current` is the node that was shown last. Siblings stay in the order of
    `nodes`. Raises Malformed if nodes follow one another in a circle.
    """
    order = list(_in_order(nodes))
    if len(order) < len(nodes):
        raise circle(facts.title)
    above: dict[str, str | None] = {}  # the nearest node before it that is shown
    for name in order:
        parent = nodes[name].parent
        above[name] = None if parent is None or parent not in nodes else _shown(nodes, above, parent)
    followers = Counter(above[name] for name in order if nodes[name].text is not None)
    records: dict[str, _Record] = {}
    made: list[_Record] = []
    for name in order:
        node, before = nodes[name], above[name]
        if node.text is None:
            continue
        previous = records[before] if before is not None else None
        joins = previous is not None and node.role == previous.node.role == "assistant" and followers[before] == 1
        if previous is None or not joins:
            parent_id = previous.id if previous is not None else None
            previous = _Record(message_id(facts.id, name), parent_id, node)
            made.append(previous)
        previous.texts.append(node.text)
        previous.model = node.model or previous.model
        records[name] = previous
    messages = tuple(_message(facts.id, record) for record in made)
    leaf = _leaf(nodes, above, records, current) or (messages[-1].id if messages else None)
    times = [message.created_ms for message in messages if message.created_ms]
    first = next((message.text for message in messages if message.role == "user"), "")
    created_ms = facts.created_ms or min(times, default=0)
    return Conversation(
        id=facts.id,
        title=facts.title or propose_title(first),
        colour=TO_BE_CHOSEN,
        leaf=leaf,
        system_prompt=facts.system_prompt,
        created_ms=created_ms,
        updated_ms=facts.updated_ms or max(times, default=created_ms),
        messages=messages,
        pinned=facts.pinned,
        archived=facts.archived,
    )


def ordered(nodes: Mapping[str, Any], children: str) -> list[str]:
    """The names of all nodes of a file; those that follow the same one in the order in which its member `children`
    lists them.
    """
    places: dict[str, int] = {}
    for node in nodes.values():
        for place, child in enumerate(items(obj(node).get(children))):
            if isinstance(child, str):
                places.setdefault(child, place)
    return sorted(nodes, key=lambda name: places.get(name, 0))


def _in_order(nodes: Mapping[str, Node]) -> Iterator[str]:
    """Every node that a first one leads to, each before those that follow it."""
    children: dict[str | None, list[str]] = {}
    for name, node in nodes.items():
        known = node.parent if node.parent in nodes else None
        children.setdefault(known, []).append(name)
    waiting = children.get(None, [])[::-1]
    while waiting:
        name = waiting.pop()
        yield name
        waiting += reversed(children.get(name, []))


def _shown(nodes: Mapping[str, Node], above: Mapping[str, str | None], name: str) -> str | None:
    return name if nodes[name].text is not None else above[name]


def _leaf(
    nodes: Mapping[str, Node], above: Mapping[str, str | None], records: Mapping[str, _Record], current: str | None
) -> MessageId | None:
    if current is None or current not in nodes:
        return None
    shown = _shown(nodes, above, current)
    return records[shown].id if shown is not None else None


def _message(conversation: ConversationId, record: _Record) -> Message:
    return Message(
        id=record.id,
        conversation=conversation,
        parent=record.parent,
        role=record.node.role,
        text="\n\n".join(text.strip() for text in record.texts) if len(record.texts) > 1 else record.texts[0],
        created_ms=record.node.created_ms,
        model=cut(record.model, MODEL_LENGTH, "") if record.node.role == "assistant" else "",
        attachments=record.node.attachments,
    )
