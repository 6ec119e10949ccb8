import pytest

from kvdesk.viewmodel.fuzzy import match


@pytest.mark.parametrize("wanted", ["new chat", "nc", "chat new", "NEW", "newc", ""])
def test_letters_in_their_order_are_found(wanted: str) -> None:
    assert match(wanted, "New chat") is not None


def test_a_part_of_a_word_is_found_and_scattered_letters_are_not() -> None:
    assert match("spector", "Show or hide the cache inspector") is not None
    assert match("safe", "Show more of the inspector, or the map and four numbers") is None
    assert match("safe", "Setting: Safe mode") is not None
    assert match("设置", "打开设置") is not None


@pytest.mark.parametrize("wanted", ["x", "wen", "ea", "new chats"])
def test_what_nobody_meant_is_not(wanted: str) -> None:
    assert match(wanted, "New chat") is None


def test_whole_words_and_beginnings_come_first() -> None:
    texts = ["Show or hide the chats", "Settings", "Settings of the context", "Rebuild the context"]

    def order(wanted: str) -> list[str]:
        found = {text: one.score for text in texts if (one := match(wanted, text)) is not None}
        return sorted(found, key=lambda text: -found[text])

    assert order("set")[0] == "Settings"
    assert order("rebuild") == ["Rebuild the context"]
    assert order("context")[0] in texts[2:]


def test_the_places_are_those_of_the_best_way() -> None:
    assert sorted(match("chat", "Catch a chat").places) == [8, 9, 10, 11]
