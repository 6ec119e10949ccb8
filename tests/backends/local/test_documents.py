"""*Documents read once*: what was computed of an attached text in one chat is put behind another beginning."""

import json
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from kvdesk.backends.local.cache_manager.documents import READ_AGAIN, Documents, Run
from kvdesk.backends.local.cache_manager.forgotten_states import forget_saved
from kvdesk.backends.local.cache_manager.operation_journal import OperationJournal
from kvdesk.backends.local.cache_manager.saved_states import NOBODY, SavedStateStore
from kvdesk.backends.local.cache_manager.sequences import CacheSequence
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.scheduler.document_runs import all_read
from kvdesk.cache.compaction import Layout
from kvdesk.cache.compare import divergence
from kvdesk.chat import Conversation, QueuedMessage
from kvdesk.conversations.parameters import Parameters
from kvdesk.conversations.requests import generate, preview, preview_prompt
from kvdesk.headless import HeadlessEngine, session_of
from kvdesk.message import Attachment, ConversationId, Message, MessageId, new_conversation_id, new_message_id
from kvdesk.policies import prompt_piece
from kvdesk.policies.swap import Limits, Placement, StateKind
from kvdesk.protocol.cache import Forget, OperationDone, RebuildContext, UsePolicy, Verified, VerifyConversation
from kvdesk.protocol.chat import CloseConversation, DropMessages, Generate, TurnEnded, TurnPreview
from kvdesk.protocol.operations import Compact, Operate
from kvdesk.protocol.prompt import PromptPreview
from kvdesk.settings import CachePolicy, CacheType, ContextSettings, Overflow, Sampling, Settings
from kvdesk.values import replace
from tests.backends.local.conftest import SMALL, empty, opened_with
from tests.backends.local.ids import Ids
from tests.backends.local.test_cache_manager import audited
from tests.backends.local.test_stop_waiting import step_until
from tests.backends.local.test_turns import of
from tests.backends.local.tiny_models import written

NAMES = ("Ada", "Bo", "Cy", "Di", "Ed", "Flo")
TEXT = "".join(f"{NAMES[n % 6]} keeps {n} lamps in the tower by the sea.\n" for n in range(24))
REPORT = Attachment("report.txt", "text", TEXT)
GREEDY = Sampling(temperature=0.0, max_tokens=1)
READ_ONCE = Settings(cache=CachePolicy(read_once=True), sampling=GREEDY)
OFF = Settings(sampling=GREEDY)


class Chat:
    """One conversation, each with another beginning."""

    def __init__(self, headless: HeadlessEngine, beginning: str, settings: Settings = READ_ONCE) -> None:
        self.headless, self.settings = headless, settings
        self.known = Conversation(new_conversation_id(), "", 0, system_prompt=beginning)
        self.messages: list[Message] = []

    @property
    def id(self) -> ConversationId:
        return self.known.id

    def asked(self, text: str, *attachments: Attachment) -> Generate:
        parent = self.messages[-1].id if self.messages else None
        question = Message(new_message_id(), self.id, parent, "user", text, attachments=attachments)
        self.messages.append(question)
        return generate(self.known, new_message_id(), self.messages, self.settings)

    def ask(self, text: str, *attachments: Attachment) -> TurnEnded:
        command = self.asked(text, *attachments)
        self.headless.events = []
        (ended,) = of(self.headless.do(command), TurnEnded)
        self.messages.append(Message(command.answer, self.id, self.messages[-1].id, "assistant", "Yes."))
        return ended

    @property
    def sequence(self) -> CacheSequence:
        sequence = self.held
        assert sequence is not None
        return sequence

    @property
    def held(self) -> CacheSequence | None:
        return session_of(self.headless).runtime.cache_manager.pool.get(self.id)


def store(headless: HeadlessEngine) -> SavedStateStore:
    return session_of(headless).runtime.cache_manager.swapper.saved_states


def documents(headless: HeadlessEngine) -> list[tuple[ConversationId, ...]]:
    """The chats of each document that is kept."""
    return [saved.chats for saved in store(headless)._all() if saved.chats]


def n_document(headless: HeadlessEngine) -> int:
    (saved,) = [saved for saved in store(headless)._all() if saved.chats]
    return len(saved.tokens)


def logits(headless: HeadlessEngine, chat: Chat) -> np.ndarray:
    probe = session_of(headless).runtime.cache_manager.probe
    return np.asarray(probe.next_logits(chat.sequence), np.float64)[None]


FIRST, SECOND = "You are a careful reader.", "This is a chat about holidays by the sea. It rains on most days there."


def test_another_chat_reads_only_its_first_tokens(headless: HeadlessEngine) -> None:
    one, two = Chat(headless, FIRST), Chat(headless, SECOND)
    read = one.ask("How many lamps has Ada?", REPORT).stats
    assert (read.put_tokens, documents(headless)) == (0, [(one.id,)])
    ended, n = two.ask("Who has three lamps?", REPORT), n_document(headless)
    stats = ended.stats
    assert (ended.state, stats.put_tokens) == ("complete", n - READ_AGAIN)
    assert stats.reused_tokens + stats.put_tokens + stats.prefilled_tokens == stats.prompt_tokens
    assert stats.prefilled_tokens < 100 < n
    said = "tokens of report.txt were read at another place and put here; answers may differ a little."
    assert stats.why.endswith(f" {n - READ_AGAIN:,} {said}")
    assert f"{stats.put_tokens:,} tokens were put there, {stats.prefilled_tokens:,} prefilled." in stats.why
    (operation,) = [e for e in of(headless.events, OperationDone) if e.name == "splice"]
    assert operation.conversation == two.id
    assert [call.partition("(")[0] for call in operation.call.split("; ")] == [
        "llama_state_seq_set_data",
        *(f"llama_memory_seq_{name}" for name in ("rm", "add", "cp", "rm")),
    ]
    assert "report.txt" in operation.reason
    assert documents(headless) == [(one.id, two.id)]
    mirror = session_of(headless).runtime.context.memory.mirror
    assert list(two.sequence.tokens) == mirror.tokens_of(two.sequence.seq_id)
    audited(headless)
    again = two.ask("And who has four?").stats
    assert (again.put_tokens, again.prefilled_tokens < 40) == (0, True)
    audited(headless)


def test_its_logits_are_near_those_of_a_chat_that_read_all(
    embedded: HeadlessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also kept as q8_0."""
    for module in ("cache_manager.documents", "scheduler.document_runs"):
        monkeypatch.setattr(f"kvdesk.backends.local.{module}.LEAST_TOKENS", 64)
    short, whole = replace(REPORT, text=TEXT[: len(TEXT) // 2]), Chat(embedded, SECOND, OFF)
    assert not whole.ask("Who has three lamps?", short).stats.put_tokens
    wanted = logits(embedded, whole)
    for rounds in (False, True):
        empty(embedded)
        embedded.do(UsePolicy(CachePolicy(read_once=True, documents_q8_0=rounds)))
        one, two = Chat(embedded, FIRST), Chat(embedded, SECOND)
        one.ask("How many lamps has Ada?", short)
        assert two.ask("Who has three lamps?", short).stats.put_tokens
        (kl,) = divergence(wanted, logits(embedded, two))
        assert 1e-9 < kl < 0.05, "near, and not what reading all gives"


def test_behind_the_same_beginning_it_is_what_reading_gives(headless: HeadlessEngine) -> None:
    """Read and put there, each with nothing else in the cache."""
    one, two, whole = Chat(headless, FIRST), Chat(headless, FIRST), Chat(headless, FIRST, OFF)
    one.ask("How many lamps has Ada?", REPORT)
    (saved,) = [saved for saved in store(headless)._all() if saved.chats]
    store(headless).join(saved, ConversationId("another chat"), MessageId("its message"))
    headless.do(CloseConversation(one.id))
    assert two.ask("Who has three lamps?", REPORT).stats.put_tokens == n_document(headless) - READ_AGAIN
    found = logits(headless, two)
    headless.do(CloseConversation(two.id))
    assert whole.ask("Who has three lamps?", REPORT).stats.reused_tokens == 0
    (kl,) = divergence(logits(headless, whole), found)
    assert kl < session_of(headless).loaded.noise[1]


def test_off_by_default(headless: HeadlessEngine) -> None:
    for beginning in (FIRST, SECOND):
        stats = Chat(headless, beginning, OFF).ask("How many lamps has Ada?", REPORT).stats
        assert (stats.put_tokens, "report.txt" in stats.why) == (0, False)
    assert documents(headless) == []
    assert CachePolicy().read_once is False


def test_the_same_beginning_is_shared_exactly(headless: HeadlessEngine) -> None:
    Chat(headless, FIRST).ask("How many lamps has Ada?", REPORT)
    stats = Chat(headless, FIRST).ask("Who has three lamps?", REPORT).stats
    assert (stats.put_tokens, stats.reused_tokens > n_document(headless)) == (0, True)


def test_what_was_put_there_goes_to_no_other_chat(headless: HeadlessEngine) -> None:
    one, two, three = Chat(headless, FIRST), Chat(headless, SECOND), Chat(headless, SECOND)
    one.ask("How many lamps has Ada?", REPORT)
    session_of(headless).runtime.cache_manager.evict(one.sequence, "to make room")
    two.ask("Who has three lamps?", REPORT)
    stats = three.ask("Who has five lamps?", REPORT).stats
    assert stats.reused_tokens <= two.sequence.exact < len(two.sequence.tokens)
    assert stats.put_tokens == n_document(headless) - READ_AGAIN
    audited(headless)


def test_several_documents_in_one_prompt(headless: HeadlessEngine) -> None:
    other = Attachment("notes.md", "text", TEXT.replace("lamps", "nets")[:1200])
    one, two = Chat(headless, FIRST), Chat(headless, SECOND)
    one.ask("How many lamps has Ada?", other)
    Chat(headless, FIRST).ask("How many nets has Ada?", replace(REPORT, text=TEXT[:1300]))
    assert len(documents(headless)) == 2
    stats = two.ask("And now?", replace(REPORT, text=TEXT[:1300], name="copy.txt"), other).stats
    assert stats.why.count("were read at another place and put here") == 2, stats.why
    assert "of copy.txt" in stats.why
    audited(headless)


def test_two_chats_at_once_beside_an_answer(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one of them restores changes neither what the other reads nor what is being written."""
    longer = READ_ONCE.model_copy(update={"sampling": GREEDY.model_copy(update={"max_tokens": 60})})
    one, writer = Chat(headless, FIRST), Chat(headless, "Hi", longer)
    two, three = Chat(headless, SECOND), Chat(headless, "A chat among friends, at home.")
    monkeypatch.setattr(headless.engine.session.loaded.model.vocab, "is_eog", lambda _: False)
    one.ask("How many lamps has Ada?", REPORT)
    n = n_document(headless)
    session_of(headless).runtime.cache_manager.evict(one.sequence, "to make room")
    headless.events = []
    commands = [writer.asked("Name three towns."), two.asked("Who has three?", REPORT), three.asked("Who?", REPORT)]
    for command in commands:
        headless.engine.handle(command)
    step_until(headless, lambda: len(of(headless.events, TurnEnded)) == len(commands))
    put = {ended.conversation: ended.stats.put_tokens for ended in of(headless.events, TurnEnded)}
    assert put == {writer.id: 0, two.id: n - READ_AGAIN, three.id: n - READ_AGAIN}
    audited(headless)
    headless.events = []
    (verified,) = of(headless.do(VerifyConversation(writer.id)), Verified)
    assert (verified.n_tokens > 60, verified.logits.verdict.same) == (True, True)


@pytest.mark.parametrize("delete", [CloseConversation, Forget], ids=["deleted", "forgotten"])
def test_it_is_deleted_with_the_last_chat_that_has_it(
    headless: HeadlessEngine, delete: Callable[[ConversationId], CloseConversation]
) -> None:
    one, two = Chat(headless, FIRST), Chat(headless, SECOND)
    one.ask("How many lamps has Ada?", REPORT)
    two.ask("Who has three lamps?", REPORT)
    headless.do(delete(one.id))
    assert documents(headless) == [(two.id,)]
    headless.do(delete(two.id))
    assert documents(headless) == []


def test_a_chat_whose_message_is_deleted_has_it_no_more(headless: HeadlessEngine) -> None:
    one = Chat(headless, FIRST)
    one.ask("How many lamps has Ada?", REPORT)
    headless.do(DropMessages(one.id, (one.messages[0].id,)))
    assert documents(headless) == []


def test_with_exact_answers_everything_is_read(talking_file: Path) -> None:
    for headless in opened_with(talking_file, SMALL.model_copy(update={"exact": True})):
        for beginning in (FIRST, SECOND):
            stats = Chat(headless, beginning).ask("How many lamps has Ada?", REPORT).stats
            assert stats.put_tokens == 0
            assert stats.why.endswith("report.txt is read: with exact answers everything is read.")
        assert documents(headless) == []


@pytest.mark.parametrize("name", ["mamba2", "granitehybrid"])
def test_models_that_cannot_say_why(tiny_folder: Path, name: str) -> None:
    for headless in opened_with(written(tiny_folder, name, text=True), SMALL.model_copy(update={"n_ctx": 4096})):
        headless.engine.session.loaded.model.vocab.ignore_eog()
        ended = Chat(headless, FIRST).ask("How many lamps has Ada?", REPORT)
        assert "report.txt is read: " in ended.stats.why
        assert (ended.stats.put_tokens, documents(headless)) == (0, [])


def test_only_plain_attention_that_can_move_its_cells_can(tiny: Model, tmp_path: Path) -> None:
    with closing(Ids(tiny, tmp_path, CacheType.F16)) as ids:
        why_not = Documents(ids.context, ids.cache_manager, OperationJournal(ids.context, ids.events.append)).why_not
        facts = tiny.facts
        moves = facts.kind == "attention" and facts.can_shift and facts.n_pos_per_embd == 1
        assert (not why_not) == (moves and facts.architecture != "gpt2"), (facts, why_not)  # learned positions


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        pytest.param({"type_k": "q8_0"}, "round", id="quantized"),
        pytest.param({"kv_unified": False, "n_ctx": 4096}, "stream", id="streams"),
    ],
)
def test_contexts_that_cannot_say_why(talking_file: Path, changed: dict[str, object], said: str) -> None:
    settings = ContextSettings(**(SMALL.model_dump() | changed))
    for headless in opened_with(talking_file, settings):
        assert said in session_of(headless).runtime.documents.why_not


def test_names_in_the_reason_stay_as_they_are() -> None:
    run = Run("report.txt", 0, 400, MessageId("1"))
    assert all_read([run], 0, "K is bf16: no.") == ["report.txt is read: K is bf16: no."]


def test_an_exact_overflow_policy_reads_it(headless: HeadlessEngine) -> None:
    Chat(headless, FIRST).ask("How many lamps has Ada?", REPORT)
    two = Chat(headless, SECOND)
    two.known = replace(two.known, overflow=Overflow.RECOMPUTE.value)
    stats = two.ask("Who has three lamps?", REPORT).stats
    assert stats.put_tokens == 0
    assert stats.why.endswith("report.txt is read: its overflow policy keeps answers exact.")


def chats_on_disk(folder: Path) -> list[list[str]]:
    """The chats of each document in the index, whose files are there."""
    rows = [row for row in json.loads((folder / "index.json").read_bytes()) if row["chats"]]
    assert all((folder / f"{row['key']}.kvstate").is_file() for row in rows)
    return [row["chats"] for row in rows]


def test_after_a_restart(talking_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is on disk, and deleted there with its last chat, even if no model is open."""
    chats: list[ConversationId] = []
    for beginning in (FIRST, SECOND):
        for headless in opened_with(talking_file, SMALL):
            headless.do(UsePolicy(CachePolicy(read_once=True), tmp_path))
            swapper = session_of(headless).runtime.cache_manager.swapper
            monkeypatch.setattr(swapper, "_costs", lambda n, _: (1e3 * n, 1.0))
            assert documents(headless) == [tuple(chats)] * len(chats)
            chat = Chat(headless, beginning)
            n_put = chat.ask("Who has three lamps?", REPORT).stats.put_tokens
            assert n_put == (n_document(headless) - READ_AGAIN if chats else 0)
            audited(headless)
            chats.append(chat.id)
    assert chats_on_disk(tmp_path) == [chats]
    forget_saved(tmp_path, chats[0])
    assert chats_on_disk(tmp_path) == [chats[1:]]
    forget_saved(tmp_path, chats[1])
    assert chats_on_disk(tmp_path) == []
    assert len(list(tmp_path.glob("*.kvstate"))) == 0


def test_it_stays_when_the_context_is_rebuilt(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = Chat(headless, FIRST), Chat(headless, SECOND)
    one.ask("How many lamps has Ada?", REPORT)
    headless.do(RebuildContext(SMALL, keep="nothing"))
    monkeypatch.setattr(session_of(headless).runtime.cache_manager.swapper, "_costs", lambda n, _: (1e3 * n, 1.0))
    assert documents(headless) == [(one.id,)]
    assert two.ask("Who has three lamps?", REPORT).stats.put_tokens == n_document(headless) - READ_AGAIN
    audited(headless)


def test_a_chat_is_deleted_while_another_model_is_open(tmp_path: Path) -> None:
    """The document is of another kind of state then; the file leaves with its last chat."""
    one, two = ConversationId("one"), ConversationId("two")
    kinds = [StateKind(name, "engine", "f16", "f16", flash_attn=True, rope=(1.0, 1.0)) for name in ("a", "b")]
    there = SavedStateStore(tmp_path, kinds[0], Limits(0, 10_000))
    to_disk = Placement("disk", (), (), "")
    messages = MessageId("of one"), MessageId("of two")
    there.put(to_disk, NOBODY, range(300), bytes(1000), 1.0, first=20, chats=(one, two), messages=messages)
    there.close()
    other = SavedStateStore(tmp_path, kinds[1], Limits(0, 10_000))
    other.leave(one)
    other.close()
    assert chats_on_disk(tmp_path) == [[two]]
    saved = SavedStateStore(tmp_path, kinds[0], Limits(0, 10_000)).document(range(300))
    assert (saved.first, saved.chats, saved.messages) == (20, (two,), messages[1:])
    other = SavedStateStore(tmp_path, kinds[1], Limits(0, 10_000))
    other.leave(two)
    other.close()
    assert chats_on_disk(tmp_path) == []
    assert not list(tmp_path.glob("*.kvstate"))


def test_it_keeps_to_the_limits_of_saved_conversations(headless: HeadlessEngine) -> None:
    headless.do(UsePolicy(CachePolicy(read_once=True, memory_mb=0)))
    Chat(headless, FIRST).ask("How many lamps has Ada?", REPORT)
    assert documents(headless) == []
    assert "keep document" not in [operation.name for operation in of(headless.events, OperationDone)]


def test_its_first_chat_was_evicted_and_the_cells_reordered(headless: HeadlessEngine) -> None:
    one, two = Chat(headless, FIRST), Chat(headless, SECOND)
    one.ask("How many lamps has Ada?", REPORT)
    cache = session_of(headless).runtime.cache_manager
    cache.evict(one.sequence, "to make room")
    two.ask("Hello")
    n = two.ask("Who has three lamps?", REPORT).stats.put_tokens
    assert n == n_document(headless) - READ_AGAIN
    headless.do(Operate(Compact(Layout.BY_CONVERSATION)))
    audited(headless)
    assert two.ask("And who has four?").stats.prefilled_tokens < 40
    audited(headless)


def test_it_is_stopped_before_and_behind_it(headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    longer = READ_ONCE.model_copy(update={"sampling": GREEDY.model_copy(update={"max_tokens": 200})})
    one, two, engine = Chat(headless, FIRST), Chat(headless, SECOND, longer), headless.engine
    monkeypatch.setattr(engine.session.loaded.model.vocab, "is_eog", lambda _: False)
    one.ask("How many lamps has Ada?", REPORT)
    n = n_document(headless)
    monkeypatch.setattr(prompt_piece, "LONGEST_GAP_MS", 0.001)
    monkeypatch.setattr(engine.session.runtime.cache_manager.costs, "reading_ms", lambda *_: 1e6)

    def holds(least: int) -> bool:
        return two.held is not None and len(two.held.tokens) >= least

    for least in (1, n):
        command = replace(two.asked("Who has three lamps?", REPORT), answer=new_message_id())
        two.messages.pop()
        headless.events = []
        engine.handle(command)
        step_until(headless, partial(holds, least))
        engine.request_stop(command.answer)
        step_until(headless, lambda: bool(of(headless.events, TurnEnded)))
        (ended,) = of(headless.events, TurnEnded)
        assert (ended.state, ended.stats.put_tokens) == ("stopped", 0 if least == 1 else n - READ_AGAIN)
        assert ended.stats.prefilled_tokens >= 0
        audited(headless)
    two.settings = READ_ONCE
    assert two.ask("Who has three lamps?", REPORT).state == "complete"
    audited(headless)


@pytest.mark.parametrize("what", ["damaged", "no seq_id", "no room"])
def test_it_is_read_where_it_cannot_be_put_there(
    headless: HeadlessEngine, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    one, two = Chat(headless, FIRST), Chat(headless, SECOND)
    one.ask("How many lamps has Ada?", REPORT)
    n, others = n_document(headless), [Chat(headless, name) for name in NAMES[:3]]
    cache = session_of(headless).runtime.cache_manager
    if what == "damaged":
        saved = store(headless).document(next(saved for saved in store(headless)._all() if saved.chats).tokens)
        assert saved is not None
        assert saved.blob is not None
        store(headless)._saved[saved.key] = replace(saved, blob=bytes(len(saved.blob)))
    elif what == "no seq_id":
        for other in others:
            other.ask("Hello")
    else:
        there = cache.make_room
        monkeypatch.setattr(cache, "make_room", lambda sequence, n_new: n_new != n and there(sequence, n_new))
    stats = two.ask("Who has three lamps?", REPORT).stats
    assert "report.txt is read: " in stats.why
    assert what in stats.why
    assert (stats.put_tokens, stats.prefilled_tokens) == (0, stats.prompt_tokens - stats.reused_tokens)
    counts = (
        f"{stats.reused_tokens} of {stats.prompt_tokens} tokens were in the cache, {stats.prefilled_tokens} prefilled"
    )
    assert counts in stats.why
    assert two.sequence.exact >= len(two.sequence.tokens)
    audited(headless)


def test_the_price_is_said_before(headless: HeadlessEngine) -> None:
    one, two = Chat(headless, FIRST), Chat(headless, SECOND)
    one.ask("How many lamps has Ada?", REPORT)
    draft, n_put = QueuedMessage("Who has three lamps?", (REPORT,)), n_document(headless) - READ_AGAIN
    (price,) = of(headless.do(preview(two.known, [], draft, READ_ONCE)), TurnPreview)
    assert f"{n_put:,} of documents read elsewhere, not exact" in price.sentence
    assert price.n_put == n_put
    stats = two.ask(draft.text, REPORT).stats
    assert stats.put_tokens == n_put
    assert stats.reused_tokens + stats.prefilled_tokens == price.n_reused + price.n_prefill
    (price,) = of(headless.do(preview(Chat(headless, "Hi").known, [], draft, OFF)), TurnPreview)
    assert "documents" not in price.sentence


def test_another_system_prompt_is_priced_with_its_documents_put_there(headless: HeadlessEngine) -> None:
    one = Chat(headless, FIRST)
    one.ask("How many lamps has Ada?", REPORT)
    n_put, other = n_document(headless) - READ_AGAIN, replace(Parameters.of(one.known), system_prompt=SECOND)
    n_again = [
        of(headless.do(preview_prompt(one.known, other, one.messages, settings)), PromptPreview)[0].n_again
        for settings in (OFF, READ_ONCE)
    ]
    assert n_again[0] - n_again[1] == n_put
    assert 0 < n_again[1] < 100 < n_put
    one.known = replace(one.known, system_prompt=SECOND)
    assert one.ask("Who has three lamps?").stats.put_tokens == n_put


def test_the_documents_of_a_prompt_are_found_where_messages_were_joined() -> None:
    """An unanswered question is joined with the next one, and a text that is attached twice is found twice."""
    chat, fenced = new_conversation_id(), Attachment("a.md", "text", "```\ncode\n```\n" + TEXT)
    said = [
        Message(new_message_id(), chat, None, "user", "One", attachments=(REPORT, fenced)),
        Message(new_message_id(), chat, None, "user", "Two", attachments=(REPORT,)),
    ]
    command = generate(Conversation(chat, "", 0), new_message_id(), said, READ_ONCE)
    (message,) = command.messages
    found = [(one.message, one.name, message.text[one.start : one.end]) for one in command.documents]
    assert found == [(message.id, one.name, one.text) for one in (REPORT, fenced, REPORT)]
    assert command.documents[2].start > command.documents[1].end
    assert generate(Conversation(chat, "", 0), new_message_id(), said, OFF).documents == ()
