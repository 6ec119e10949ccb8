"""The stored chats, for commands that work on them while no window has them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from kvdesk import paths
from kvdesk.chat import Conversation
from kvdesk.errors import StoreError, StoreInUseError, UserError
from kvdesk.store.store import Store
from kvdesk.translation import tr


@contextmanager
def chats_there() -> Iterator[Store]:
    """The database, closed at the end. Raises StoreError; with what to do where a window has it open."""
    paths.make_private()
    try:
        store = Store(paths.database_file())
    except StoreInUseError as error:
        sentence = tr("The chats are open in kvdesk's window: close it, or export and import there.")
        raise StoreInUseError(sentence, error.detail) from error
    try:
        with suppress(StoreError):  # a full disk: it stays hidden, and the rest can be read
            if (rest := store.leftover()) is not None:
                rest.finish()
        yield store
    finally:
        store.close()


def named(there: Sequence[Conversation], name: str) -> list[Conversation]:
    """Those with this id or whole title, in their order. Raises UserError if there is none."""
    found = [conversation for conversation in there if name in (conversation.id, conversation.title)]
    if not found:
        raise UserError(tr("No chat has the id or title {name}.").format(name=name))
    return found
