"""What the find bar counts in a chat."""

from collections.abc import Iterable

from kvdesk.message import Attachment, Message, MessageId
from kvdesk.values import replace
from kvdesk.viewmodel.chat.find_in_chat import MOST, SEARCHED, Finder, Hit, nearest
from tests.ui.samples import message

Q, A = MessageId("q"), MessageId("a")


def find(messages: Iterable[Message], text: str) -> tuple[Hit, ...]:
    return Finder().hits(messages, text)


def test_every_place_of_a_text_counts_whatever_its_case_and_accents() -> None:
    messages = (message("q", "user", "Café, CAFE?"), message("a", "assistant", "The cafe\u0301 is closed."))
    assert find(messages, "cafe") == (Hit(Q, 0), Hit(Q, 1), Hit(A, 0))
    assert find(messages, "tea") == find(messages, "") == find(messages, " ") == ()


def test_an_answer_is_searched_as_it_is_read_and_a_question_as_it_was_typed() -> None:
    messages = (message("q", "user", "2*3"), message("a", "assistant", "A **very** big `map`, 2*3"))
    assert find(messages, "very big map") == (Hit(A, 0),)
    assert [hit.message for hit in find(messages, "2*3")] == [Q, A]
    address = 'the [sea](http://sea.org/a_(sea) "The sea") and ![a sea](sea.png), f[0](x)'
    messages = (message("q", "user", address), message("a", "assistant", address))
    assert [hit.message for hit in find(messages, "sea")] == [Q] * 6 + [A] * 2


def test_what_is_attached_counts_before_the_text_as_far_as_it_is_marked() -> None:
    attached = Attachment("a.txt", "text", "sea " + "x" * SEARCHED + " sea")
    asked = replace(message("q", "user", "Which sea?"), attachments=(attached,))
    assert find((asked,), "sea") == (Hit(Q, 0), Hit(Q, 1))


def test_one_begins_where_one_reads() -> None:
    messages = tuple(message(name, "user", "sea") for name in "abc")
    found = find(messages, "sea")
    assert nearest(found, messages, MessageId("b")) == 1
    assert nearest(found[:1], messages, MessageId("b")) == 0, "round and round"
    assert nearest(found, messages, None) == 0
    assert nearest((), messages, None) == -1


def test_a_text_that_has_changed_is_folded_again_and_hits_have_a_bound() -> None:
    finder = Finder()
    assert len(finder.hits((message("a", "assistant", "sea"),), "SEA")) == 1
    assert len(finder.hits((message("a", "assistant", "sea, sea"),), "SEA")) == 2
    assert len(finder.hits((message("a", "assistant", "e" * (MOST + 5)),), "e")) == MOST
