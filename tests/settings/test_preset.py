"""Presets go to a file and come back; what is no preset is one sentence."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.errors import UserError
from kvdesk.settings import Mirostat, Preset, SamplerName, Sampling
from kvdesk.settings import preset as presets

MINE = Preset(
    name="Mine ü",
    system_prompt="Be brief.",
    sampling=Sampling(
        temperature=0.3,
        mirostat=Mirostat.V2,
        samplers=(SamplerName.TOP_K, SamplerName.TEMPERATURE),
        logit_bias=((15043, -100.0), (" hello", 2.5)),
        dry_sequence_breakers=("\n",),
        stop=("\n\n", "User:"),
        grammar='root ::= "ü"',
    ),
)


def test_a_preset_comes_back_as_it_was_exported() -> None:
    text = presets.exported(MINE)
    assert presets.imported(text.encode()) == MINE
    assert json.loads(text)["sampling"]["temperature"] == 0.3
    assert "top_p" not in text, "only what differs from the defaults"


def test_built_in_presets_can_be_exported_too_and_have_different_values() -> None:
    built_in = presets.built_in()
    assert built_in[0].sampling == Sampling()
    assert len({preset.sampling for preset in built_in}) == len({preset.name for preset in built_in}) == 4
    for preset in built_in:
        assert presets.imported(presets.exported(preset).encode()) == preset


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a preset of kvdesk"),
        (b'{"temperature": 1}', "not a preset of kvdesk"),
        (b'{"kind": "kvdesk preset", "version": 9}', "newer version"),
        (b'{"kind": "kvdesk preset", "version": 1}', "name"),
        (b'{"kind": "kvdesk preset", "version": 1, "name": " "}', "name"),
        (b'{"kind": "kvdesk preset", "version": 1, "name": "x", "sampling": {"top_k": -1}}', "sampling.top_k"),
        (b'{"kind": "kvdesk preset", "version": 1, "name": "x", "sampling": {"min_p": NaN}}', "sampling.min_p"),
        (b" " * (presets.MOST_BYTES + 1), "too large"),
    ],
    ids=lambda value: repr(value[:50]),
)
def test_what_is_no_preset_is_a_sentence(data: bytes, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence) as refused:
        presets.imported(data)
    assert "\n" not in str(refused.value)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)
sampling_like = st.dictionaries(st.sampled_from(sorted(Sampling.model_fields)), anything, max_size=6)


@given(st.fixed_dictionaries({"name": st.text(max_size=70) | anything, "sampling": sampling_like | anything}))
def test_any_json_is_a_preset_or_a_sentence(found: dict[str, object]) -> None:
    data = json.dumps({"kind": "kvdesk preset", "version": 1} | found).encode()
    try:
        preset = presets.imported(data)
    except UserError:
        return
    assert presets.imported(presets.exported(preset).encode()) == preset


def test_names_are_kept_apart() -> None:
    own = presets.with_preset((), MINE)
    changed = MINE.model_copy(update={"system_prompt": None})
    assert presets.with_preset(own, changed) == (changed,)
    assert presets.free_name(own, MINE.name) == "Mine ü (2)"
    assert presets.free_name(own, "Default") == "Default (2)"
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    long = Preset(name="n" * 52 + family + "nnn")
    assert presets.free_name((long,), long.name) == "n" * 52 + " (2)"
    assert [preset.name for preset in presets.renamed(own, MINE.name, "  Other  name ")] == ["Other name"]
    assert presets.without_preset(own, MINE.name) == ()
    with pytest.raises(UserError, match="built-in"):
        presets.with_preset(own, Preset(name="Default"))
    with pytest.raises(UserError, match="already a preset"):
        presets.renamed(own, MINE.name, "Precise")
    with pytest.raises(UserError, match="1 to 60 characters"):
        presets.renamed(own, MINE.name, "x" * 61)
    full = tuple(Preset(name=str(i)) for i in range(presets.MOST_PRESETS))
    with pytest.raises(UserError, match="delete one first"):
        presets.with_preset(full, MINE)
