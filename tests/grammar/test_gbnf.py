"""What llama.cpp cannot take is refused with one sentence, quickly; the rest is read as it reads it."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.errors import UserError
from kvdesk.grammar.gbnf import ANY, Chars, RuleRef, TokenRef, parsed
from kvdesk.grammar.state import checked

DOUBLED = "\n".join(f"r{i} ::= r{i + 1} | r{i + 1}" for i in range(60)) + '\nr60 ::= "x"\nroot ::= r0'
HOSTILE = {
    "": "no rule “root”",
    "answer ::= [a-z]": "no rule “root”",
    "root": "Line 1 .*::=.* is missing",
    'root ::= "a" b': "no rule “b”",
    'root ::= "a': "ends in the middle",
    "root ::= [a": "ends in the middle",
    'root ::= "\\q"': "means nothing",
    'root ::= "\\x4"': "hexadecimal",
    "root ::= *": "nothing to repeat",
    'root ::= "a" )': "something other",
    '\n\nroot ::= ("a"': "Line 3 .*“\\)” is missing",
    'root ::= "a"{': "number is missing",
    'root ::= "a"{2': "“}” is missing",
    'root ::= "a"{5,2}': "fewer than the least",
    'root ::= "a"{2001}': "more than 2,000 repetitions",
    'root ::= "a"{50}{50}': "more than 2,000 repetitions",
    'root ::= "a"{99999999999999999999}': "too large",
    "root ::= <x": "a token is written",
    "root ::= !a": "a token is written",
    "root ::= root": "begins with itself",
    'root ::= a root "x" | "y"\na ::= b\nb ::= ""': "begins with itself",
    'root ::= ("a"?)*': "begins with itself",
    'root ::= "a"\0': "no text",
    "root ::= " + "(" * 100_000: "nested too deeply",
    DOUBLED: "too many ways",
    "root ::= " + '"a"{2000} ' * 200: "too large",
    "root ::= " + '"a"{0,2000} ' * 20: "too large",
    'root ::= s\ns ::= "a" s "x" | "a" s "y" | ""': "too ambiguous",
    "root ::= [^a] root*": "too ambiguous",  # few stacks, and paths that double with every character
    'root ::= ("-" | "-")+': "too ambiguous",
    'root ::= ("--" | "-" "-")+': "too ambiguous",  # slowly: seen in long runs of one character
}


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:20]))
def test_a_grammar_that_llama_cpp_cannot_take_is_a_sentence(text: str) -> None:
    with pytest.raises(UserError, match=HOSTILE[text]) as refused:
        checked(text)
    assert "\n" not in str(refused.value)


def test_rules_are_those_that_llama_cpp_makes() -> None:
    grammar = parsed('root ::= "ab" [^x-z]? # what follows\nrest ::= ( . | <[7]> ) !<think> {2}\n')
    a, b = Chars(((97, 97),)), Chars(((98, 98),))
    assert grammar.rules == (
        ((a, b, RuleRef(1)),),
        ((Chars(((120, 122),), negated=True),), ()),
        ((RuleRef(3), TokenRef("<think>", negated=True), TokenRef("<think>", negated=True)),),
        ((ANY,), (TokenRef(7),)),
    )


def test_more_than_llama_cpps_most_repetitions_are_any_number() -> None:
    assert parsed('root ::= "a"{0,2001}').rules == parsed('root ::= "a"*').rules


SIGNS = st.sampled_from(
    ['"a"', "[b-d]", ".", "(", ")", "|", "*", "+", "?", "{2,3}", "root", "x", "\nx ::= ", " ", '""', "{9"]
)


@given(st.lists(SIGNS, max_size=14).map(" ".join))
def test_any_text_is_a_grammar_or_a_sentence(text: str) -> None:
    with suppress(UserError):
        assert checked("root ::= " + text).rules
