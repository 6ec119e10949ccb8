"""What a file of conversations has, told before anything of it is added."""

from collections import Counter
from collections.abc import Iterable

from kvdesk.chat import Conversation
from kvdesk.conversations.porting.adding import is_empty
from kvdesk.conversations.porting.formats import FORMATS
from kvdesk.conversations.porting.values import Found, Kind, LeftOut
from kvdesk.message import ConversationId
from kvdesk.quantities import day_text
from kvdesk.translation import plural, tr
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of one file. Times are Unix time in milliseconds, 0 if none is known.

    n_known     conversations that are there already, or twice in the file
    n_branches  ends of branches: a conversation without branches has one
    """

    formats: tuple[str, ...]
    n_conversations: int
    n_known: int
    n_messages: int
    n_branches: int
    first_ms: int
    last_ms: int
    left_out: LeftOut

    @property
    def n_new(self) -> int:
        """Conversations that would be added."""
        return self.n_conversations - self.n_known

    @property
    def is_verified(self) -> bool:
        """Whether all its formats were read from their exporter's own source."""
        return all(form.is_verified for form in FORMATS if form.name in self.formats)


def summary_of(found: Iterable[Found], known: Iterable[ConversationId]) -> Summary:
    """Of the conversations of a file, where `known` are there already. Empty ones count as left out alone."""
    names, formats, left_out = set(known), dict[str, None](), Counter[Kind]()
    n_conversations = n_known = n_messages = n_branches = 0
    times: list[int] = []
    for one in found:
        formats[one.format] = None
        left_out += one.left_out
        if is_empty(one.conversation):
            continue
        n_conversations += 1
        n_known += one.conversation.id in names
        names.add(one.conversation.id)
        n_messages += len(one.conversation.messages)
        n_branches += _branches(one.conversation)
        times += filter(None, (one.conversation.created_ms, one.conversation.updated_ms))
    return Summary(
        formats=tuple(formats),
        n_conversations=n_conversations,
        n_known=n_known,
        n_messages=n_messages,
        n_branches=n_branches,
        first_ms=min(times, default=0),
        last_ms=max(times, default=0),
        left_out=left_out,
    )


def _branches(conversation: Conversation) -> int:
    followed = {message.parent for message in conversation.messages}
    return sum(message.id not in followed for message in conversation.messages)


def rows(summary: Summary) -> tuple[tuple[str, str], ...]:
    """The summary as names and values for a user."""
    described = " · ".join(summary.formats)
    if not summary.is_verified:
        described += " " + tr("(unverified: its program publishes no description of this format)")
    period = tr("not known")
    if summary.last_ms:
        first, last = (day_text(ms) for ms in (summary.first_ms, summary.last_ms))
        period = first if first == last else tr("{first} to {last}").format(first=first, last=last)
    chats = f"{summary.n_conversations:,}"
    if summary.n_known:
        chats += tr(", ") + tr("{n} of them here already").format(n=f"{summary.n_known:,}")
    return (
        (tr("Format"), described),
        (tr("Chats"), chats),
        (tr("Messages"), f"{summary.n_messages:,}"),
        (tr("Branches"), f"{summary.n_branches:,}"),
        (tr("Time"), period),
        (tr("Left out"), left_out_words(summary.left_out) or tr("nothing")),
    )


def imported_sentence(n_conversations: int) -> str:
    """What came of an import."""
    if n_conversations:
        return plural("One chat was imported.", "%n chats were imported.", n_conversations)
    return tr("Nothing was imported: all of its chats are here already.")


def left_out_words(left_out: LeftOut) -> str:
    """How much of each kind, the most first; "" for nothing."""
    names = kind_names()
    return ", ".join(f"{names[kind]}: {n:,}" for kind, n in left_out.most_common() if n)


def kind_names() -> dict[Kind, str]:
    """Each kind in the user's language."""
    return {
        "pictures": tr("pictures"),
        "sound": tr("sound and video"),
        "files": tr("attached files"),
        "tool calls": tr("calls of tools"),
        "tool results": tr("results of tools"),
        "hidden messages": tr("hidden messages"),
        "system messages": tr("system messages"),
        "citations": tr("references to web pages"),
        "empty chats": tr("empty chats"),
        "damaged chats": tr("damaged chats"),
        "other content": tr("other content"),
    }
