"""Every sampler has an option; a preset is a beginning that options change."""

from pathlib import Path

import pytest

from kvdesk.cli.parser import Parser
from kvdesk.cli.sampling_options import add_sampling, chosen
from kvdesk.errors import UserError
from kvdesk.settings import Mirostat, Preset, SamplerName, Sampling
from kvdesk.settings.preset import exported


def given(*argv: str) -> Preset:
    parser = Parser("chat", "")
    add_sampling(parser)
    return chosen(parser.parse_args(argv))


def test_without_options_the_defaults_are_llama_cpps() -> None:
    assert given().sampling == Sampling()


def test_every_sampler_has_an_option_that_help_explains(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        given("--help")
    said = capsys.readouterr().out
    for name in Sampling.model_fields:
        assert f"--{name.replace('_', '-')} " in said


def test_options_are_values(tmp_path: Path) -> None:
    grammar = tmp_path / "g.gbnf"
    grammar.write_text('root ::= "ü"', encoding="utf-8")
    sampling = given(
        *("--temperature", "0.5", "--top-k", "7", "--mirostat", "2", "--samplers", "top_k; temperature"),
        *("--logit-bias", "15043-1.5", "--logit-bias", '" hello"+2', "--dry-sequence-breakers", "\\n"),
        *("--grammar-file", str(grammar), "--stop", "User:", "--stop", "\\n\\n"),
    ).sampling
    assert sampling == Sampling(
        temperature=0.5,
        top_k=7,
        mirostat=Mirostat.V2,
        samplers=(SamplerName.TOP_K, SamplerName.TEMPERATURE),
        logit_bias=((15043, -1.5), (" hello", 2.0)),
        dry_sequence_breakers=("\n",),
        grammar='root ::= "ü"',
        stop=("User:", "\n\n"),
    )


@pytest.mark.parametrize("text", ["0.7", "0,7", "7e-1", "٠٫٧"])
def test_a_number_has_a_point_or_a_comma(text: str) -> None:
    assert given("--temperature", text).sampling == Sampling(temperature=0.7)


def test_what_is_no_number_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        given("--temperature", "warm")
    assert "“warm” is not a number" in capsys.readouterr().err


def test_options_change_a_preset(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    file.write_text(exported(Preset(name="p", system_prompt="Hi", sampling=Sampling(top_k=7, top_p=0.5))))
    preset = given("--preset", str(file), "--top-k", "8")
    assert (preset.system_prompt, preset.sampling) == ("Hi", Sampling(top_k=8, top_p=0.5))


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (("--top-p", "2"), "--top-p: .* 1 .*it is 2.0"),
        (("--samplers", "top_k;zebra"), "--samplers: "),
        (("--logit-bias", "x"), "Line 1 of the logit bias"),
        (("--grammar-file", "/no/such/file"), "/no/such/file cannot be read"),
        (("--preset", __file__), "not a preset"),
    ],
)
def test_what_is_no_value_is_a_sentence(argv: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        given(*argv)
