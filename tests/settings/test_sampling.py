"""The samplers' defaults are llama.cpp's (common/common.h, `common_params_sampling`), and their texts can be read."""

import pytest
from pydantic import ValidationError

from kvdesk.settings import Mirostat, SamplerName, Sampling, llama_name
from kvdesk.settings.sampling import bias_text, escaped_lines, parsed_biases, parsed_stops


def test_defaults_are_llama_cpps() -> None:
    s = Sampling()
    assert (s.temperature, s.top_k, s.top_p, s.min_p, s.typical_p, s.top_n_sigma) == (0.8, 40, 0.95, 0.05, 1.0, -1.0)
    assert (s.dynatemp_range, s.dynatemp_exponent, s.xtc_probability, s.xtc_threshold) == (0.0, 1.0, 0.0, 0.1)
    assert (s.repeat_penalty, s.repeat_last_n, s.presence_penalty, s.frequency_penalty) == (1.0, 64, 0.0, 0.0)
    assert (s.dry_multiplier, s.dry_base, s.dry_allowed_length, s.dry_penalty_last_n) == (0.0, 1.75, 2, 64)
    assert s.dry_sequence_breakers == ("\n", ":", '"', "*")
    assert (s.mirostat, s.mirostat_tau, s.mirostat_eta) == (Mirostat.OFF, 5.0, 0.1)
    assert (s.adaptive_target, s.adaptive_decay) == (-1.0, 0.9)
    order = "penalties dry top_n_sigma top_k typ_p top_p min_p xtc temperature"
    assert [name.value for name in s.samplers] == order.split()


def test_every_sampler_has_llama_cpps_name_and_one_sentence() -> None:
    for name, info in Sampling.model_fields.items():
        assert llama_name(info), name
        assert info.title
        assert info.description
        assert not info.description.endswith(".")


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": float("nan")},
        {"top_p": float("inf")},
        {"samplers": ("top_k", "top_k")},
        {"samplers": ("infill",)},
        {"dry_sequence_breakers": ("",)},
        {"dry_sequence_breakers": ("x" * 41,)},
        {"dry_sequence_breakers": ("a\0b",)},
        {"stop": ("",)},
        {"stop": ("x" * 201,)},
        {"stop": ("x",) * 33},
        {"stop": ("\ud800",)},
        {"dry_base": 0.5},
        {"mirostat": "3"},
        {"logit_bias": ((1, float("-inf")),)},
        {"logit_bias": (("", 1.0),)},
        {"grammar": "\udc80"},
        {"grammar": "x" * 100_001},
        {"json_schema": "\0"},
    ],
    ids=str,
)
def test_what_llama_cpp_cannot_take_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Sampling.model_validate(wrong)


def test_biases_are_lines_in_llama_cpps_notation() -> None:
    biases = ((15043, -1.5), (' "hi"\n', 2.0), (0, -100.0))
    assert parsed_biases(bias_text(biases)) == biases
    assert parsed_biases('\n 7 + 3\n" x"-1\n') == ((7, 3.0), (" x", -1.0))
    assert parsed_biases("7+0,5\n8-1.5\n9−2") == ((7, 0.5), (8, -1.5), (9, -2.0))
    assert parsed_biases(bias_text(((7, 1e-5),))) == ((7, 1e-5),)
    for wrong in ("7", "-7+1", "x+1", '"x+1', "7+1.2.3", "7+", '"\\q"+1'):
        with pytest.raises(ValueError, match="Line 1 of the logit bias is not"):
            parsed_biases(wrong)
    for wrong in ("7+101", "9999999999+1"):
        with pytest.raises(ValueError, match="out of range"):
            parsed_biases(wrong)


def test_stop_strings_are_lines() -> None:
    stops = ("\n\n", "User: ", "\\n", "\t")
    assert parsed_stops(escaped_lines(stops)) == stops
    assert parsed_stops("\na\n\na\n") == ("a",)
    with pytest.raises(ValueError, match="at most 200 characters"):
        parsed_stops("x" * 201)
    with pytest.raises(ValueError, match="more than 32 stop strings"):
        parsed_stops("\n".join(map(str, range(33))))


def test_the_most_likely_token_is_taken_where_nothing_changes_the_temperature_0() -> None:
    assert Sampling(temperature=0.0).greedy
    assert not Sampling(temperature=0.0, dynatemp_range=0.5).greedy
    assert not Sampling(temperature=0.0, samplers=(SamplerName.TOP_K,)).greedy
    assert Sampling(temperature=0.0, samplers=(), mirostat=Mirostat.V1).greedy
