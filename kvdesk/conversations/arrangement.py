"""Where conversations are in the list: folders, pins and the archive. Each is a value of the conversation itself.

A folder is a name that conversations have in common: it begins with the first of them and ends with the last.
"""

from kvdesk.chat import Conversation
from kvdesk.conversations.state import ConversationState
from kvdesk.message import ConversationId
from kvdesk.values import replace


class Arrangement:
    """What a user changes of it. Nothing here counts as using a conversation: times and order stay."""

    def __init__(self, state: ConversationState) -> None:
        self._state = state

    @property
    def folders(self) -> tuple[str, ...]:
        """Their names, in alphabetical order."""
        return tuple(sorted({known.folder for known in self._state.known.all() if known.folder}, key=str.casefold))

    def pin(self, conversation: ConversationId, pinned: bool) -> None:
        if (known := self._state.known.get(conversation)) is not None:
            self._put(replace(known, pinned=pinned))

    def archive(self, conversation: ConversationId, archived: bool) -> None:
        if (known := self._state.known.get(conversation)) is not None:
            self._put(replace(known, archived=archived))

    def move(self, conversation: ConversationId, folder: str) -> None:
        """Into a folder, which is new if there is none of the name; empty: out of its folder."""
        if (known := self._state.known.get(conversation)) is not None:
            self._put(replace(known, folder=self._spelled(folder)))

    def rename_folder(self, folder: str, name: str) -> None:
        """Move all its conversations, archived ones too, into the folder of that name; empty: out of it."""
        spelled = self._spelled(name) if name.casefold() != folder.casefold() else " ".join(name.split())
        for known in self._state.known.all():
            if known.folder == folder:
                self._put(replace(known, folder=spelled))

    def _spelled(self, folder: str) -> str:
        """The name on one line, as the folder that there is writes it: two that differ in case alone are one."""
        name = " ".join(folder.split())
        return next((known for known in self.folders if known.casefold() == name.casefold()), name)

    def _put(self, changed: Conversation) -> None:
        if changed != self._state.known[changed.id]:
            self._state.put(changed)
