"""Settings come back as they were saved; what is broken has its default, is named, and is kept beside."""

import errno
import json
import os
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.errors import KvdeskError, StoreError
from kvdesk.session import SettingsStore
from kvdesk.settings import (
    ContextSettings,
    KnownServer,
    Preset,
    SamplerName,
    Sampling,
    Settings,
    ThemeChoice,
    UsedModel,
    WindowPlace,
)
from kvdesk.store import load_settings, save_changes, save_settings, settings_file
from tests.needs import needs_pipes

CHANGED = Settings(
    model="/models/ümlaut.gguf",
    context=ContextSettings(n_ctx=2048, n_threads=2),
    sampling=Sampling(temperature=0.0, seed=7),
    theme=ThemeChoice.DARK,
    sidebar_visible=False,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "settings.json"


def broken_beside(path: Path) -> Path:
    return path.with_name("settings.json.broken")


def test_settings_come_back_as_they_were_saved(path: Path) -> None:
    save_settings(CHANGED, path)
    assert load_settings(path) == (CHANGED, "")
    assert [file.name for file in path.parent.iterdir()] == ["settings.json"]


def test_what_was_never_chosen_is_not_written(path: Path) -> None:
    save_settings(Settings(context=ContextSettings(n_ctx=2048)), path)
    assert json.loads(path.read_text(encoding="utf-8")) == {"version": 2, "context": {"n_ctx": 2048}}


def test_numbers_beyond_any_time_or_screen_cost_nothing_but_themselves(path: Path) -> None:
    model = {"path": "m.gguf", "favourite": True, "used_ms": 10**18, "tok_s": 1e300}
    window = {"x": -(10**12), "y": 3, "width": 10**12, "inspector_width": 10**400}
    path.write_text(json.dumps({"version": 2, "theme": "dark", "models": [model], "window": window}), encoding="utf-8")
    settings, said = load_settings(path)
    assert settings == Settings(
        theme=ThemeChoice.DARK, models=(UsedModel(path="m.gguf", favourite=True),), window=WindowPlace(y=3)
    )
    assert "models.0.used_ms" in said


def test_a_default_of_the_first_version_was_nobody_s_choice(path: Path) -> None:
    """That version wrote every setting: n_ubatch 32, its default, would keep prompts slow for ever."""
    found = CHANGED.model_dump(mode="json")
    del found["context"]["exact"]
    found["context"]["n_ubatch"] = 32
    path.write_text(json.dumps(found), encoding="utf-8")
    assert load_settings(path) == (CHANGED, "")
    found["context"]["n_ubatch"] = 48
    path.write_text(json.dumps(found), encoding="utf-8")
    assert load_settings(path)[0].context.n_ubatch == 48, "somebody chose that"


def test_exact_answers_without_flash_attention_of_an_earlier_version_get_it(path: Path) -> None:
    context = {"exact": True, "flash_attn": False, "n_ctx": 2048}
    found = {"version": 2, "context": context, "models": [{"path": "/a.gguf", "context": context}]}
    path.write_text(json.dumps(found), encoding="utf-8")
    settings, said = load_settings(path)
    assert said == ""
    for loaded in (settings.context, settings.models[0].context):
        assert loaded == ContextSettings(exact=True, n_ctx=2048)


def test_32_tokens_a_graph_can_be_chosen(path: Path) -> None:
    chosen = Settings(context=ContextSettings(n_ubatch=32))
    save_settings(chosen, path)
    assert load_settings(path) == (chosen, "")


def test_without_a_file_everything_has_its_default(path: Path) -> None:
    assert load_settings(path) == (Settings(), "")
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b" " * 2_000_000, b"7"])
def test_a_file_that_is_not_settings_gives_defaults_and_is_kept(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    settings, sentence = load_settings(path)
    assert settings == Settings()
    assert "damaged; defaults are used" in sentence
    assert broken_beside(path).read_bytes() == content


def test_only_what_is_out_of_range_falls_back(path: Path) -> None:
    found = CHANGED.model_dump(mode="json")
    found["context"]["n_ctx"] = -5
    found["sampling"]["top_p"] = "much"
    found["theme"] = "polka dots"
    path.write_text(json.dumps(found), encoding="utf-8")
    settings, sentence = load_settings(path)
    assert settings.context == ContextSettings(n_threads=2)
    assert settings.sampling == CHANGED.sampling
    assert settings.model == CHANGED.model
    assert settings.theme is ThemeChoice.SYSTEM
    assert "context.n_ctx, sampling.top_p, theme." in sentence
    assert "settings.json.broken" in sentence
    assert json.loads(broken_beside(path).read_text(encoding="utf-8")) == found


def test_a_table_that_is_no_table_falls_back_whole(path: Path) -> None:
    path.write_text('{"context": 3, "model": "m.gguf"}', encoding="utf-8")
    settings, sentence = load_settings(path)
    assert settings == Settings(model="m.gguf", all_instruments=True)
    assert "context" in sentence


def test_settings_of_another_version_are_passed_over(path: Path) -> None:
    path.write_text('{"flying": true, "context": {"n_wings": 2, "n_ctx": 512}}', encoding="utf-8")
    settings, sentence = load_settings(path)
    assert settings.context.n_ctx == 512
    assert sentence == ""


def test_presets_are_kept_and_a_broken_one_costs_no_other(path: Path) -> None:
    presets = (
        Preset(name="One"),
        Preset(name="Two", system_prompt="", sampling=Sampling(top_k=7)),
        Preset(name="Three"),
    )
    saved = Settings(presets=presets, sampling=Sampling(samplers=(SamplerName.TOP_K,)))
    save_settings(saved, path)
    assert load_settings(path) == (saved, "")
    found = json.loads(path.read_text(encoding="utf-8"))
    del found["presets"][0]["name"]
    found["presets"][1]["sampling"] = {"top_k": 7, "top_p": 9, "logit_bias": [[1, 2], ["x", "y"], [3]]}
    found["presets"][2] = 3
    found["sampling"]["samplers"] = ["top_k", "a sampler of tomorrow"]
    path.write_text(json.dumps(found), encoding="utf-8")
    settings, sentence = load_settings(path)
    kept = presets[1].model_copy(update={"sampling": Sampling(top_k=7, logit_bias=((1, 2.0),))})
    assert settings == saved.model_copy(update={"presets": (kept,)})
    assert "presets.0, presets.1.sampling.top_p" in sentence


def test_settings_of_the_version_before_open_unchanged(path: Path) -> None:
    """With the samplers there were then."""
    then = {"temperature": 0.3, "top_k": 7, "top_p": 0.9, "min_p": 0.1, "repeat_penalty": 1.1, "repeat_last_n": 32}
    path.write_text(json.dumps({"version": 2, "sampling": then | {"seed": 4, "max_tokens": 99}}), encoding="utf-8")
    assert load_settings(path) == (Settings(sampling=Sampling(**then, seed=4, max_tokens=99)), "")


def test_settings_that_could_not_be_read_again_are_not_saved(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_settings(CHANGED, path)
    monkeypatch.setattr("kvdesk.store.settings_file._MOST_BYTES", 400)
    with pytest.raises(StoreError, match="too large"):
        save_settings(Settings(system_prompt="x" * 400), path)
    assert load_settings(path) == (CHANGED, "")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
names = st.sampled_from([*Settings.model_fields, *ContextSettings.model_fields, *Sampling.model_fields])


@given(st.dictionaries(names, json_values | st.dictionaries(names, json_values)))
def test_any_json_gives_settings(tmp_path_factory: pytest.TempPathFactory, found: dict[str, object]) -> None:
    path = tmp_path_factory.getbasetemp() / "any-settings.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    settings, _ = load_settings(path)
    save_settings(settings, path)
    assert load_settings(path) == (settings, "")


def test_a_folder_in_the_place_of_the_file_is_a_sentence(path: Path) -> None:
    path.mkdir()
    settings, sentence = load_settings(path)
    assert settings == Settings()
    assert "cannot be read" in sentence
    with pytest.raises(StoreError, match="cannot be saved"):
        save_settings(Settings(), path)
    assert [file.name for file in path.parent.iterdir()] == ["settings.json"]


def test_a_failed_save_leaves_the_old_file(path: Path) -> None:
    save_settings(CHANGED, path)
    path.with_name(f"settings.json.{os.getpid()}.part").mkdir()
    with pytest.raises(StoreError, match="cannot be saved"):
        save_settings(Settings(), path)
    assert load_settings(path) == (CHANGED, "")


def test_half_a_character_in_the_system_prompt_is_replaced_when_it_is_saved(path: Path) -> None:
    save_settings(Settings().model_copy(update={"system_prompt": "Be\udc80 brief \ud83d\ude00"}), path)
    assert load_settings(path)[0].system_prompt == "Be\ufffd brief 😀"


@needs_pipes
def test_a_pipe_in_place_of_the_settings_does_not_block(path: Path) -> None:
    os.mkfifo(path)
    settings, sentence = load_settings(path)
    assert settings == Settings()
    assert sentence == "The settings in settings.json cannot be read (it is not a file); defaults are used."


@needs_pipes
def test_a_pipe_in_place_of_the_file_kept_beside_does_not_block(path: Path) -> None:
    path.write_bytes(b"{oops")
    kept = path.with_name("settings.json.broken")
    os.mkfifo(kept)
    assert "is kept as settings.json.broken" in load_settings(path)[1]
    assert kept.read_bytes() == b"{oops"


@pytest.mark.skipif(sys.platform == "win32", reason="a folder cannot be locked there")
def test_a_folder_that_another_program_keeps_locked_is_a_sentence(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    monkeypatch.setattr(settings_file, "LOCK_S", 0.02)
    save_settings(CHANGED, path)
    locked = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(locked, fcntl.LOCK_EX)
    complaints: list[KvdeskError] = []
    store = SettingsStore(CHANGED, partial(save_changes, path=path), complaints.append)
    store.change(zoom=150)
    assert [str(error) for error in complaints] == [
        "The settings are not saved: another program has locked their folder. The next change saves all."
    ]
    assert load_settings(path) == (CHANGED, "")
    os.close(locked)
    store.change(tour_seen=True)
    assert len(complaints) == 1
    assert load_settings(path) == (CHANGED.model_copy(update={"zoom": 150, "tour_seen": True}), "")


def test_a_path_that_is_too_long_is_a_sentence(tmp_path: Path) -> None:
    assert "cannot be read" in load_settings(tmp_path / ("x" * 300))[1]


def test_a_machine_with_more_cores_than_llama_cpp_has_threads_has_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psutil.cpu_count", lambda logical: 1024)  # noqa: ARG005
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(1024), raising=False)
    assert Settings().context.n_threads == 512


def test_a_file_from_before_a_setting_goes_on_as_it_was(path: Path) -> None:
    """Who had all instruments before they could be folded away keeps them; a new person begins with the calm view."""
    path.write_text('{"theme": "dark"}', encoding="utf-8")
    settings, sentence = load_settings(path)
    assert (settings.theme, settings.all_instruments, sentence) == (ThemeChoice.DARK, True, "")
    save_settings(settings.model_copy(update={"all_instruments": False}), path)
    assert not load_settings(path)[0].all_instruments
    path.unlink()
    assert not load_settings(path)[0].all_instruments


def test_a_change_leaves_in_the_file_what_this_version_does_not_know(path: Path) -> None:
    written = {
        "version": 3,
        "wings": [1, 2],
        "sampling": {"top_k": 7, "dreams": 0.5},
        "window": {"opacity": 0.9},
        "servers": [{"url": "http://a", "mood": "good"}, {"url": "http://b", "mood": "bad"}],
    }
    path.write_text(json.dumps(written), encoding="utf-8")
    before, sentence = load_settings(path)
    assert sentence == ""
    servers = (KnownServer(url="http://c"), before.servers[1].model_copy(update={"name": "bee"}))
    sampling = Sampling(top_p=0.5)
    save_changes(before, before.model_copy(update={"zoom": 150, "servers": servers, "sampling": sampling}), path)
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "version": 3,
        "wings": [1, 2],
        "sampling": {"top_p": 0.5, "dreams": 0.5},
        "window": {"opacity": 0.9},
        "servers": [{"url": "http://c"}, {"url": "http://b", "mood": "bad", "name": "bee"}],
        "zoom": 150,
    }


def test_changes_of_two_programs_meet_in_the_file(path: Path) -> None:
    save_settings(CHANGED, path)
    before = load_settings(path)[0]
    for update in ({"zoom": 150}, {"sampling": before.sampling.model_copy(update={"min_p": 0.2})}):
        save_changes(before, before.model_copy(update=update), path)
    other = before.model_copy(update={"sampling": before.sampling.model_copy(update={"typical_p": 0.9})})
    save_changes(before, other, path)
    sampling = before.sampling.model_copy(update={"min_p": 0.2, "typical_p": 0.9})
    assert load_settings(path) == (before.model_copy(update={"zoom": 150, "sampling": sampling}), "")


@pytest.mark.parametrize("content", [None, b"", b"[1]", b'{"zoom": 150', b"\xff\xfe"])
def test_a_file_that_was_lost_or_damaged_meanwhile_is_written_whole(path: Path, content: bytes | None) -> None:
    if content is not None:
        path.write_bytes(content)
    save_changes(CHANGED, CHANGED.model_copy(update={"zoom": 150}), path)
    assert load_settings(path) == (CHANGED.model_copy(update={"zoom": 150}), "")


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
def test_a_file_that_cannot_be_read_is_not_replaced(path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fail(_path: Path) -> None:
        raise OSError(number, os.strerror(number))

    save_settings(CHANGED, path)
    with monkeypatch.context() as patched:
        patched.setattr(settings_file, "open_regular", fail)
        assert os.strerror(number) in load_settings(path)[1]
        with pytest.raises(StoreError, match=os.strerror(number)):
            save_changes(Settings(), Settings(zoom=150), path)
    assert load_settings(path) == (CHANGED, "")


@given(st.dictionaries(names, json_values | st.dictionaries(names, json_values)))
def test_a_change_of_any_json_is_kept(tmp_path_factory: pytest.TempPathFactory, found: dict[str, object]) -> None:
    path = tmp_path_factory.getbasetemp() / "any-changed-settings.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    before, _ = load_settings(path)
    now = before.model_copy(update={"zoom": 150, "tour_seen": True, "server": "http://c"})
    save_changes(before, now, path)
    assert load_settings(path) == (now, "")
