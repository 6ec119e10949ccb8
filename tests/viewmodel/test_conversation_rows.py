"""Where a conversation stands in the list."""

from kvdesk.chat import Conversation
from kvdesk.message import ConversationId
from kvdesk.viewmodel.chat.conversation_rows import conversation_rows


def chat(name: str, folder: str = "", *, pinned: bool = False, archived: bool = False) -> Conversation:
    return Conversation(ConversationId(name), name, 0, folder=folder, pinned=pinned, archived=archived)


CHATS = (
    chat("new"),
    chat("plan", "work"),
    chat("trip", "Alps"),
    chat("top", "work", pinned=True),
    chat("old"),
    chat("first", pinned=True),
    chat("gone", "work", archived=True),
    chat("hut", "Alps"),
)


def keys(*collapsed: str, archived: bool = False) -> list[str]:
    return [name for _, name in (row.key for row in conversation_rows(CHATS, collapsed, archived=archived))]


def test_pinned_chats_come_first_then_folders_then_the_rest_each_in_their_order() -> None:
    assert keys() == ["first", "Alps", "trip", "hut", "work", "top", "plan", "new", "old"]
    heads = {row.folder: row.n for row in conversation_rows(CHATS) if row.conversation is None}
    assert heads == {"Alps": 2, "work": 2}, "a pinned chat stays in its folder, an archived one is not counted"


def test_a_collapsed_folder_keeps_its_head() -> None:
    assert keys("Alps", "nowhere") == ["first", "Alps", "work", "top", "plan", "new", "old"]
    assert [row.is_open for row in conversation_rows(CHATS, {"Alps"}) if row.conversation is None] == [False, True]


def test_the_archive_is_a_list_of_its_own() -> None:
    assert keys(archived=True) == ["gone"]
