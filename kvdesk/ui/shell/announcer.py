"""Says to a screen reader that an answer of the shown conversation begins, and how it has ended.

Errors and the ends of operations are said by the strips that show them.
"""

from typing import Final

from kvdesk.graphemes import cut
from kvdesk.message import MessageState
from kvdesk.protocol.chat import TurnEnded, TurnStarted
from kvdesk.session import Changed, Store
from kvdesk.session.changed import Update
from kvdesk.translation import tr
from kvdesk.ui.chat.chat_pane import ChatPane
from kvdesk.ui.widgets.access.announce import announce

_LONGEST: Final = 600  # characters of an answer that are said; the message itself has all of it


class Announcer:
    """Made after what shows the events it looks at."""

    def __init__(self, store: Store, chat: ChatPane) -> None:
        self._state, self._chat = store, chat
        chat.destroyed.connect(store.listen(self._on_changed, often=()))

    def _on_changed(self, _changed: Changed, event: Update | None) -> None:
        match event:
            case TurnStarted() if event.conversation == self._state.selected:
                announce(self._chat, tr("The answer begins."))
            case TurnEnded() if event.conversation == self._state.selected:
                self._end(event)

    def _end(self, event: TurnEnded) -> None:
        widget = self._chat.view.widget_of(event.answer)
        text = widget.message.text.strip() if widget is not None else ""
        if len(text) > _LONGEST:
            text = f"{cut(text, _LONGEST, '').rsplit(' ', 1)[0]}…"
        said = f"{_ending(event.state)} {event.note} {text}"
        announce(self._chat, " ".join(said.split()), urgent=event.state == "failed")


def _ending(state: MessageState) -> str:
    match state:
        case "complete":
            return tr("The answer has ended.")
        case "stopped":
            return tr("The answer was stopped.")
        case _:
            return tr("The answer was not finished.")
