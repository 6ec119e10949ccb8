"""The rows of the list of conversations: pinned ones first, then folders, then the rest; or the archive alone.

A pinned chat in a folder comes first there.
"""

from collections.abc import Collection, Sequence

from kvdesk.chat import Conversation
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A conversation, or the head of a folder: then `conversation` is None.

    folder      its name; of a conversation only where it is below the head of its folder
    n           how many conversations are in the folder; is_open: whether they are listed
    """

    conversation: Conversation | None
    folder: str = ""
    n: int = 0
    is_open: bool = True

    @property
    def key(self) -> tuple[str, str]:
        """Tells it from all other rows, whatever its values are."""
        return ("chat", self.conversation.id) if self.conversation is not None else ("folder", self.folder)

    @property
    def target_folder(self) -> str:
        """The folder into which something goes that is dropped here; empty: none."""
        return self.conversation.folder if self.conversation is not None else self.folder


def conversation_rows(
    conversations: Sequence[Conversation], collapsed: Collection[str] = (), *, archived: bool = False
) -> tuple[Row, ...]:
    """Rows from top to bottom. In each part conversations keep their order; folders are in alphabetical order.

    collapsed  names of folders whose conversations are not listed
    archived   only what is archived, as one list without folders; else only what is not
    """
    listed = [known for known in conversations if known.archived == archived]
    if archived:
        return tuple(map(Row, listed))
    folders: dict[str, list[Conversation]] = {}
    for known in listed:
        if known.folder:
            folders.setdefault(known.folder, []).append(known)
    rows = [Row(known) for known in listed if known.pinned and not known.folder]
    for name in sorted(folders, key=lambda name: (name.casefold(), name)):
        rows.append(Row(None, name, len(folders[name]), name not in collapsed))
        if name not in collapsed:
            rows += (Row(known, name) for known in sorted(folders[name], key=lambda known: not known.pinned))
    rows += (Row(known) for known in listed if not known.pinned and not known.folder)
    return tuple(rows)
