"""Where an answer is in its grammar."""

import pytest

from kvdesk.errors import UserError
from kvdesk.grammar.gbnf import parsed
from kvdesk.grammar.state import GrammarState, checked


def read(grammar: str, *pieces: bytes) -> tuple[bool, bool] | None:
    """Whether the answer may end, and must, after these tokens (whose ids are 1, 2, 3 …); None: not allowed."""
    state = GrammarState(parsed(grammar), {"<think>": 2}.get)
    for token, piece in enumerate(pieces, start=1):
        position = state.after(token, piece)
        if position is None:
            return None
        state.position = position
    return state.position.complete, state.position.over


def test_a_text_is_followed_character_by_character() -> None:
    number = 'root ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)?'
    assert read(number, b"-1", b"0.2", b"5") == (True, False)
    assert read(number, b"-1", b"0.") == (False, False)
    assert read(number, b"01") is None
    assert read('root ::= "yes" | "no"', b"ye", b"s") == (True, True)


def test_a_character_may_be_in_two_tokens() -> None:
    umlaut = "ü".encode()
    assert read('root ::= "ü"', umlaut[:1]) == (False, False)
    assert read('root ::= "ü"', umlaut[:1], umlaut[1:]) == (True, True)
    assert read('root ::= "ü"', umlaut[:1], b"x") is None
    assert read("root ::= .", b"\xff") is None


def test_tokens_are_compared_whole() -> None:
    assert read('root ::= "a" <think> "b"', b"a", b"<think>", b"b") == (True, True)
    assert read('root ::= "a" !<think> "b"', b"a", b"<think>") is None
    assert read('root ::= "a" !<[7]>', b"ab") is None, "llama.cpp would end the process here"
    with pytest.raises(UserError, match="<other> is not one token"):
        read("root ::= <other>", b"a")


def test_stacks_that_become_too_many_are_noticed_while_an_answer_is_written() -> None:
    grammar = 'root ::= "{" root "}" | s\ns ::= "a" s "x" | "a" s "y" | ""'
    state = GrammarState(parsed(grammar), lambda _: None)
    with pytest.raises(UserError, match="too ambiguous"):
        state.after(1, b"a" * 30)


def test_paths_that_become_too_many_are_noticed_before_tokens_are_compared() -> None:
    state = GrammarState(parsed("root ::= <[7]> [^a] rest*\nrest ::= [^a] rest*"), lambda _: None)
    state.look_ahead()
    position = state.after(7, b"x")
    assert position is not None
    state.position = position
    with pytest.raises(UserError, match="too ambiguous"):
        state.look_ahead()


def test_the_grammar_of_json_is_not_too_ambiguous() -> None:
    grammar = r"""
        root   ::= object
        value  ::= object | array | string | number | ("true" | "false" | "null") ws
        object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
        array  ::= "[" ws ( value ("," ws value)* )? "]" ws
        string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
        number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
        ws     ::= | " " | "\n" [ \t]{0,20}
    """
    assert len(checked(grammar).rules) > 70
    assert read(grammar, b'{"na', b'me": [1.5, "', "ü".encode(), b'"]', b"}") == (True, False)


@pytest.mark.parametrize(
    ("grammar", "said", "forced"),
    [
        ('root ::= "abc" [0-9] "d"', "", "abc"),
        ('root ::= "abc" [0-9] "d"', "a", "bc"),
        ('root ::= "abc" [0-9] "d"', "abc7", "d"),
        ('root ::= "abc" [0-9] "d"', "abc7d", ""),
        ('root ::= "ab" ("cd" | "ce")', "", "abc"),
        ('root ::= "ab" ("cd" | "e")', "", "ab"),
        ('root ::= "ab" "c"?', "a", "b"),
        ('root ::= "a" [^b] "c"', "", "a"),
        ('root ::= <think> "a"', "", ""),
        ('root ::= "é" "ü"', "", "éü"),
        ('root ::= "x"+', "", "x"),
    ],
)
def test_what_must_come_next_is_known(grammar: str, said: str, forced: str) -> None:
    state = GrammarState(parsed(grammar), {"<think>": 2}.get)
    for char in said:
        position = state.after(1, char.encode())
        assert position is not None
        state.position = position
    assert state.forced() == forced


def test_half_a_character_leaves_nothing_known() -> None:
    state = GrammarState(parsed('root ::= "éü"'), lambda _: None)
    position = state.after(1, "é".encode()[:1])
    assert position is not None
    state.position = position
    assert state.forced() == ""
