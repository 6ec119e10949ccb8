"""What `kvdesk serve` tells its engine before the model, without an engine."""

import signal
import threading
from pathlib import Path

import pytest

from kvdesk import paths
from kvdesk.__main__ import main
from kvdesk.cli.serve import _bounded, _wait
from kvdesk.host.host import Host
from kvdesk.protocol.cache import ContextInfo, UsePolicy
from kvdesk.protocol.chat import LoadModel, ModelLoaded
from kvdesk.protocol.features import OF_ENGINE
from kvdesk.protocol.messages import Command, CommandFailed
from kvdesk.protocol.model import ModelInfo
from kvdesk.server.config import ServerConfig
from kvdesk.server.server import Server
from kvdesk.settings import CachePolicy, ContextSettings, Sampling, Settings
from kvdesk.store.settings_file import save_settings
from kvdesk.values import replace
from tests.backends.scripted import ScriptedBackend

CHOSEN = CachePolicy(save_idle_requests=False, memory_mb=8, follow_load=False)


class WithoutModels(ScriptedBackend):
    """Takes every command down, and opens no model."""

    commands: list[Command]
    features = OF_ENGINE

    def handle(self, command: Command, at_s: float | None = None) -> None:  # noqa: ARG002 - as any back end
        self.commands.append(command)
        if isinstance(command, LoadModel):
            self._emit(CommandFailed(command, "There is no model."))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Command]:
    """The commands that reach the engine. The settings are those of a folder of its own."""
    commands: list[Command] = []
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    monkeypatch.setattr(WithoutModels, "commands", commands, raising=False)
    monkeypatch.setattr("kvdesk.backends.local.engine.Engine", WithoutModels)
    return commands


def serve(capsys: pytest.CaptureFixture[str]) -> str:
    """Start it in vain; what it says on standard error."""
    assert main(["serve", "--port", "0", "--model", "none.gguf", "--n-ctx", "512"]) == 2
    return capsys.readouterr().err


def test_the_engine_does_with_the_cache_what_the_settings_say(
    told: list[Command], capsys: pytest.CaptureFixture[str]
) -> None:
    others = Settings(cache=CHOSEN, context=ContextSettings(n_ctx=2048), sampling=Sampling(temperature=0.1))
    save_settings(others, paths.settings_file())
    assert serve(capsys) == "There is no model.\n"
    policy, load = told
    assert policy == UsePolicy(CHOSEN, None), "states on the disk belong to the window"
    assert isinstance(load, LoadModel)
    assert load.context.n_ctx == 512, "the command line's, not the window's"


def test_a_remark_about_the_model_is_said(
    told: list[Command], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class WithRemark(WithoutModels):
        def handle(self, command: Command, at_s: float | None = None) -> None:
            if isinstance(command, LoadModel):
                self._emit(ModelLoaded(ModelInfo(command.source, "tiny"), "Its chat template cannot be used."))
            super().handle(command, at_s)

    monkeypatch.setattr("kvdesk.backends.local.engine.Engine", WithRemark)
    assert serve(capsys) == "Its chat template cannot be used.\nThere is no model.\n"
    assert len(told) == 2


def test_without_settings_it_has_the_defaults(told: list[Command], capsys: pytest.CaptureFixture[str]) -> None:
    assert serve(capsys) == "There is no model.\n"
    assert told[0] == UsePolicy(CachePolicy())


def test_damaged_settings_are_told_and_end_nothing(told: list[Command], capsys: pytest.CaptureFixture[str]) -> None:
    paths.settings_file().write_text("{", encoding="utf-8")
    assert serve(capsys).startswith("The settings in settings.json are damaged; defaults are used.")
    assert told[0] == UsePolicy(CachePolicy())


@pytest.mark.parametrize("option", ["--api-key", "--inspect-key"])
def test_a_key_that_is_too_short_is_refused_by_its_option(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", option, "secret"])
    assert f"serve: {option}: a key has 8 characters" in capsys.readouterr().err


def test_the_most_tokens_of_an_answer_reach_the_server(
    told: list[Command], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found: list[int] = []
    made = Server.__init__

    def keep(self: Server, host: Host, config: ServerConfig, sampling: Sampling | None = None) -> None:
        found.append(config.max_tokens)
        made(self, host, config, sampling)

    monkeypatch.setattr(Server, "__init__", keep)
    for more in ([], ["--max-tokens", "16"]):
        assert main(["serve", "--port", "0", "--model", "none.gguf", *more]) == 2
    assert found == [0, 16]
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    assert "Most tokens in one answer (default as long as the context)" in " ".join(capsys.readouterr().out.split())
    assert told


def test_a_signal_that_another_thread_gets_ends_it() -> None:
    over, before = threading.Event(), signal.getsignal(signal.SIGTERM)

    def end() -> None:
        while signal.getsignal(signal.SIGTERM) is before:
            pass
        signal.raise_signal(signal.SIGTERM)

    thread = threading.Thread(target=end)
    thread.start()
    _wait(over)
    thread.join()
    assert over.is_set()
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(("asked", "n_mb"), [(None, 25), (7, 7), (0, 0)])
def test_saved_states_take_as_much_memory_as_twice_the_context(asked: int | None, n_mb: int) -> None:
    context = ContextInfo(4096, 4096, 8, 512, 512, 1, "f16", "f16", True, True, 6_100_000, 6_100_000)
    bounded = _bounded(UsePolicy(CachePolicy()), context, asked)
    assert bounded.policy.memory_mb == n_mb
    assert _bounded(UsePolicy(CHOSEN), context, None).policy.memory_mb == 8, "no more than the person set"
    recurrent = replace(context, k_bytes=0, v_bytes=0, recurrent_bytes=12_200_000)
    assert _bounded(UsePolicy(CachePolicy()), recurrent, asked).policy.memory_mb == n_mb
