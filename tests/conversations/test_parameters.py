"""System prompt, sampling and chat template of one conversation: what is asked of the back end with them."""

from kvdesk.conversations.changes import ConversationChanged
from kvdesk.conversations.parameters import Parameters
from kvdesk.protocol.chat import MeasureContext, PreviewTurn
from kvdesk.settings import Sampling, Settings
from tests.conversations.conftest import Held

OWN = Parameters("Be brief.", Sampling(temperature=0.1, max_tokens=99), "{{ messages[0].content }}")


def test_every_request_has_the_conversations_own_parameters(held: Held) -> None:
    first = held.say("One")
    held.answer(first, "First")
    conversation = first.conversation
    held.service.set_parameters(conversation, OWN)
    second = held.say("Two", conversation)
    assert (first.sampling, first.template) == (held.settings.sampling, "")
    assert (second.sampling, second.template) == (OWN.sampling, OWN.template)
    assert (second.messages[0].role, second.messages[0].text) == ("system", "Be brief.")
    held.answer(second, "Second")
    held.service.turns.preview(conversation, "Three")
    held.service.turns.measure(conversation)
    previewed = next(command for command in held.commands if isinstance(command, PreviewTurn))
    measured = next(command.turn for command in held.commands if isinstance(command, MeasureContext))
    assert (previewed.template, previewed.max_tokens) == (OWN.template, 99)
    assert measured.template == OWN.template
    assert previewed.messages[0] == measured.messages[0] == second.messages[0]


def test_the_settings_count_where_a_conversation_has_no_sampling_of_its_own(held: Held) -> None:
    held.settings = Settings(sampling=Sampling(top_k=3))
    assert held.say("One").sampling.top_k == 3


def test_a_change_is_told_once_and_an_answer_that_runs_keeps_what_it_began_with(held: Held) -> None:
    asked = held.say("One")
    held.told.clear()
    held.service.set_parameters(asked.conversation, OWN)
    held.service.set_parameters(asked.conversation, OWN)
    (changed,) = held.told
    assert isinstance(changed, ConversationChanged)
    assert Parameters.of(changed.conversation) == OWN
    held.answer(asked, "First")
    assert Parameters.of(held.service.conversations[0]) == OWN, "the end of an answer takes nothing back"


def test_a_fork_has_the_same_parameters(held: Held) -> None:
    asked = held.say("One")
    held.answer(asked, "First")
    held.service.set_parameters(asked.conversation, OWN)
    fork = held.service.fork(asked.conversation, None)
    assert fork is not None
    known = held.service.get(fork)
    assert known is not None
    assert Parameters.of(known) == OWN


def test_what_differs_from_the_settings() -> None:
    settings = Settings(system_prompt="Be kind.", sampling=Sampling(temperature=0.5))
    assert Parameters.default(settings) == Parameters("Be kind.")
    assert Parameters().own_sampling(settings) == ()
    assert Parameters(sampling=settings.sampling).own_sampling(settings) == ()
    own = Parameters(sampling=Sampling(top_k=1))
    assert own.own_sampling(settings) == ("temperature", "top_k")
