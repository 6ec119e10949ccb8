"""Templates, journals, databases and settings that mean harm: refused with a sentence or harmless, in bounds."""

import copy
import json
import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import psutil
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kvdesk.backends.local.prompt import template_process
from kvdesk.backends.local.prompt.template_process import TemplateProcess
from kvdesk.backends.local.prompt.templates import OWN_PER_MESSAGE, OWN_TEXT, REPEATED
from kvdesk.cache.journal.file import load_journal, save_journal
from kvdesk.chat import Conversation
from kvdesk.errors import KvdeskError, StoreError, TemplateError, UserError
from kvdesk.message import ConversationId, Message, MessageId
from kvdesk.settings import Settings
from kvdesk.store.settings_file import load_settings, save_settings
from kvdesk.store.store import Store
from tests.backends.local.test_template_process import chat
from tests.cache.journals import FACTS, Player
from tests.cache.test_journal_file import HEADER
from tests.stress.conftest import SEED, SHARE, Row, forms
from tests.stress.damaged_homes import DATABASE, JUNK, NUMBERS, VALUES, damaged_database

LIMIT_S = 10.0
LIMIT_BYTES = 200_000_000


def for_all(row: Row, n: int, strategy: st.SearchStrategy[Any], holds: Callable[[Any], None]) -> None:
    """Check `holds` for `n` examples; what fails names its seed."""
    n = max(1, round(SHARE * n)) if row.long else n
    quiet = settings(
        max_examples=n,
        deadline=None,
        derandomize=False,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),  # no shrinking: an example may take seconds
    )
    done = iter(range(1, 1 << 30))

    @hypothesis.seed(SEED)
    @quiet
    @given(strategy)
    def check(example: Any) -> None:
        hypothesis.note(f"seed {SEED}")
        if (number := next(done)) % 50 == 0:
            row.say(f"{holds.__name__.strip('_')}: {number} of {n}")
        with bounded():
            holds(example)

    check()


@contextmanager
def bounded() -> Iterator[None]:
    """What is done within takes at most LIMIT_S and leaves no more than LIMIT_BYTES behind."""
    mine = psutil.Process()
    before, start_s = mine.memory_info().rss, time.monotonic()
    yield
    assert time.monotonic() - start_s < LIMIT_S
    assert mine.memory_info().rss - before < LIMIT_BYTES


def check_sentence(error: KvdeskError) -> None:
    said = str(error)
    assert 0 < len(said) <= 600, said
    assert "\n" not in said, said
    assert said.endswith((".", ")")), said


# --- templates ------------------------------------------------------------------------------------------------------

_ATOMS = st.sampled_from((
    *("1", "-1", "2**64", "10**9", "1.5e308", "none", "true", "''", "'a'", "'€' * 9999999", "'a' * 20000000000"),
    *("messages", "messages[0].content", "bos_token", "range(99999999)", "dict(a=1)", "[1]", "{}", "x", "loop", "self"),
    *("namespace(a=1)", "cycler('a')", "lipsum", "joiner()", "''.__class__", "''['__class__']", "messages.append"),
    *("raise_exception", "strftime_now('%Y')", "'%s' * 9999", "caller", "varargs", "'\\ud800'", "'<|im_end|>'"),
))  # fmt: skip
_FILTERS = st.sampled_from((
    *("string", "list", "length", "tojson", "upper", "trim", "reverse", "sort", "unique", "join('aaaaaaaa')", "e"),
    *("center(2000000000)", "indent(2000000000)", "batch(2)", "slice(2)", "format(1, 2)", "replace('a', 'a' * 9999)"),
    *("map('string')", "map(attribute='__class__')", "attr('__class__')", "groupby('a')", "pprint", "int", "float"),
    *("wordwrap(1)", "urlize", "xmlattr", "sum", "dictsort", "random", "first", "nothing", "round(400)", "truncate(1)"),
))  # fmt: skip
_METHODS = st.sampled_from((
    *("upper()", "split('')", "split()", "join(messages)", "format(x)", "replace('', 'aaaa' * 9999)", "encode()"),
    *("zfill(2000000000)", "ljust(2000000000)", "items()", "values()", "pop()", "__init__", "append(x)", "__globals__"),
    *("format_map(dict())", "expandtabs(99999999)", "splitlines()", "translate({})", "update(a=x)", "copy()", "mro()"),
))  # fmt: skip
_OPERATORS = st.sampled_from(("+", "-", "*", "**", "~", "//", "%", "/", "in", "==", "<", "and", "is"))
EXPRESSIONS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.builds("({}|{})".format, inner, _FILTERS),
        st.builds("({}).{}".format, inner, _METHODS),
        st.builds("({} {} {})".format, inner, _OPERATORS, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("({})[{}]".format, inner, inner),
        st.builds("({})({})".format, inner, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
    ),
    max_leaves=8,
)
STATEMENTS = st.recursive(
    st.one_of(
        st.builds("{{{{ {} }}}}".format, EXPRESSIONS),
        st.text(max_size=20),
        st.builds("{{% set x = {} %}}".format, EXPRESSIONS),
    ),
    lambda inner: st.one_of(
        st.builds("{{% for x in {} %}}{}{{% endfor %}}".format, EXPRESSIONS, inner),
        st.builds("{{% for x in range(9999) recursive %}}{}{{{{ loop(range(99)) }}}}{{% endfor %}}".format, inner),
        st.builds("{{% if {} %}}{}{{% else %}}{}{{% endif %}}".format, EXPRESSIONS, inner, inner),
        st.builds("{{% macro x(y) %}}{}{{{{ x(y) }}}}{{% endmacro %}}{{{{ x({}) }}}}".format, inner, EXPRESSIONS),
        st.builds("{{% set x %}}{}{{% endset %}}{}".format, inner, inner),
        st.builds("{{% filter {} %}}{}{{% endfilter %}}".format, _FILTERS, inner),
        st.builds("{}{}{}".format, inner, inner, inner),
        st.builds("{}{{% generation %}}{}".format, inner, inner),
        st.builds("{{% include {} %}}{{% import 'os' as x %}}{}".format, EXPRESSIONS, inner),
    ),
    max_leaves=6,
)


def template(source: str) -> None:
    process = TemplateProcess(source, control_tokens=frozenset({"<|im_end|>"}))
    try:
        messages = chat("Hi", "there", "you")
        text = process.rendering(messages, True).text
        n_given = sum(len(message.text) for message in messages)
        assert len(text) <= OWN_TEXT + REPEATED * n_given + OWN_PER_MESSAGE * len(messages)
    except TemplateError as error:
        check_sentence(error)
    finally:
        process.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a template that computes for ever is given."""
    monkeypatch.setattr(template_process, "TIME_LIMIT_S", 0.5)


@pytest.mark.usefixtures("impatient")
@forms(5, 250)
def test_templates(row: Row, n: int) -> None:
    for_all(row, n, STATEMENTS, template)


# --- journals -------------------------------------------------------------------------------------------------------

HOSTILE_JSON = st.one_of(
    st.sampled_from(
        (*VALUES, *NUMBERS, float("nan"), float("inf"), "x" * 100_000, [[0, 0, 1 << 40]], [[0] * 7] * 3000)
    ),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=8)),
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
        max_leaves=6,
    ),
)
MOST_BYTES = 1_000_000
"""Of a changed file: what is read stays small, and so does what a failure shows."""
CHANGES = st.tuples(
    st.integers(0, 2**32 - 1),
    st.lists(st.tuples(st.sampled_from(("value", "bytes", "lines", "missing")), HOSTILE_JSON), max_size=4),
)


def put_somewhere(tree: Any, value: Any, rng: random.Random, *, remove: bool = False) -> None:
    """Replace (or remove) one value anywhere in nested objects and lists."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        if not keys:
            return
        key = rng.choice(keys)
        if not isinstance(tree[key], dict | list) or not tree[key] or rng.random() < 0.3:
            if remove:
                del tree[key]
            else:
                tree[key] = copy.deepcopy(value)
            return
        tree = tree[key]


def changed_lines(lines: list[bytes], seed: int, changes: list[tuple[str, Any]]) -> bytes:
    rng = random.Random(seed)
    lines = list(lines)
    for what, value in changes:
        i = min(rng.randrange(len(lines)), rng.randrange(len(lines)))  # the header is as likely as all others
        if what in ("value", "missing"):
            try:
                found = json.loads(lines[i])
                put_somewhere(found, value, rng, remove=what == "missing")
            except (ValueError, TypeError, RecursionError):
                continue
            lines[i] = json.dumps(found).encode()
        elif what == "bytes":
            data = bytearray(lines[i])
            for _ in range(rng.choice((1, 5, 50))):
                data[rng.randrange(len(data))] = rng.randrange(256)
            lines[i] = bytes(data)
        else:
            j = rng.randrange(len(lines))
            lines[i], lines[j] = rng.choice(
                ((lines[j], lines[i]), (lines[i], lines[i]), (lines[i], rng.choice(JUNK) or b" "))
            )
    changed = b"\n".join(lines) + b"\n"
    assert len(changed) <= MOST_BYTES
    return changed


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> list[list[bytes]]:
    folder = tmp_path_factory.mktemp("journals")
    made = []
    for i, facts in enumerate(FACTS):
        player = Player(facts, i % 2 == 0, False, 3, i)
        player.play(20)
        save_journal(folder / f"{i}.jsonl", player.journal.recording(), HEADER)
        made.append((folder / f"{i}.jsonl").read_bytes().splitlines())
    return made


@forms(50, 250)
def test_journals(row: Row, journals: list[list[bytes]], tmp_path: Path, n: int) -> None:
    path = tmp_path / "journal.jsonl"

    def journal(example: tuple[int, list[tuple[str, Any]]]) -> None:
        seed, changes = example
        path.write_bytes(changed_lines(journals[seed % len(journals)], seed, changes))
        try:
            _, recording = load_journal(path)
        except UserError as error:
            check_sentence(error)
            return
        for number in {recording.start, (recording.start + recording.last) // 2, recording.last}:
            recording.state_at(number)
        recording.operations(0, 1 << 30)

    for_all(row, n, CHANGES, journal)


# --- databases ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("database") / DATABASE
    store = Store(path)
    for c in range(4):
        where = ConversationId(f"c{c}")
        store.put_conversation(Conversation(where, f"Chat {c}", c, MessageId(f"m{c}-5")))
        for m in range(6):
            parent = MessageId(f"m{c}-{m - 1}") if m else None
            text = f"words of {c} {m} " * (400 if m == 2 else 5)
            store.put_message(Message(MessageId(f"m{c}-{m}"), where, parent, "assistant" if m % 2 else "user", text))
    store.close()
    return path.read_bytes()


@forms(25, 250)
def test_databases(row: Row, database: bytes, tmp_path: Path, n: int) -> None:
    def chats(seed: int) -> None:
        for old in tmp_path.iterdir():
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        (tmp_path / DATABASE).write_bytes(database)
        hypothesis.note(damaged_database(tmp_path, random.Random(seed)))
        try:
            store = Store(tmp_path / DATABASE)
        except StoreError as error:
            check_sentence(error)
            return
        new = Conversation(ConversationId("new"), "New", 0)
        uses: tuple[Callable[[], object], ...] = (
            *(store.conversations, lambda: store.search("words of"), lambda: store.put_conversation(new)),
            *((lambda c=c: store.all_messages(ConversationId(f"c{c}"))) for c in range(4)),
            *(lambda: store.delete_conversation(ConversationId("c1")), store.forget_deleted),
        )
        for use in (*uses, store.close):
            try:
                use()
            except StoreError as error:
                check_sentence(error)

    for_all(row, n, st.integers(0, 2**64 - 1), chats)


# --- settings -------------------------------------------------------------------------------------------------------


@forms(50, 250)
def test_settings(row: Row, tmp_path: Path, n: int) -> None:
    path = tmp_path / "settings.json"
    whole = json.dumps(json.loads(Settings().model_dump_json())).encode()

    def settings_file(example: tuple[int, list[tuple[str, Any]]]) -> None:
        seed, changes = example
        path.write_bytes(changed_lines([whole], seed, changes))
        found, complaint = load_settings(path)
        assert "\n" not in complaint
        save_settings(found, path)
        assert load_settings(path) == (found.model_copy(), "")

    for_all(row, n, CHANGES, settings_file)
