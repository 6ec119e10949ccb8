"""A loaded GGUF model: weights, vocabulary, facts. Knows nothing of contexts."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kvdesk.backends.local.llama.binding import engine_log, lib
from kvdesk.backends.local.llama.traits import ModelTraits, model_traits
from kvdesk.backends.local.llama.vocab import Vocab
from kvdesk.cache.geometry import ModelFacts, model_facts
from kvdesk.errors import ModelFileError
from kvdesk.paths import model_name
from kvdesk.protocol.model import LocalFile, ModelInfo
from kvdesk.translation import tr

_TEXT_BUFFER = 1 << 20


class Model:
    """Owns a `llama_model *`. Close it after every context made from it.

    `on_progress` gets 0.0 to 1.0 on the calling thread and stops the load by returning False.

    Raises ModelFileError when llama.cpp cannot load the file; what it said is the error's detail.
    """

    def __init__(self, path: Path, on_progress: Callable[[float], bool] | None = None) -> None:
        log = engine_log()
        log.forget()
        self.path = path
        params = lib.llama_model_default_params()
        params.n_gpu_layers = 0
        callback = lib.llama_progress_callback(lambda p, _data: on_progress is None or on_progress(p))
        params.progress_callback = callback
        self._handle: Any = lib.llama_model_load_from_file(str(path).encode("utf-8", "surrogateescape"), params)
        if not self._handle:
            raise ModelFileError(
                tr("llama.cpp cannot load {file}: {reason}").format(file=path.name, reason=_reason(log.problems())),
                log.problems(),
            )
        self.vocab = Vocab(self._handle)
        self.chat_template = self._meta("tokenizer.chat_template")
        architecture = self._meta("general.architecture")
        self.facts: ModelFacts = model_facts(
            architecture=architecture,
            n_swa=int(lib.llama_model_n_swa(self._handle)) or self._hidden_window(architecture),
            is_recurrent=bool(lib.llama_model_is_recurrent(self._handle)),
            is_hybrid=bool(lib.llama_model_is_hybrid(self._handle)),
            rope_type=int(lib.llama_model_rope_type(self._handle)),
            mla=self._meta(f"{architecture}.attention.key_length_mla") not in ("", "0"),
            n_layer=int(lib.llama_model_n_layer(self._handle)),
            indexer=self._meta(f"{architecture}.attention.indexer.top_k") not in ("", "0"),
        )
        self.traits: ModelTraits = model_traits(
            architecture, int(lib.llama_model_rope_type(self._handle)), self.n_ctx_train, self._meta
        )
        if not lib.llama_model_has_decoder(self._handle):
            self.close()
            raise ModelFileError(
                tr("{file} is an encoder: it cannot continue a text, so it cannot chat.").format(file=path.name)
            )

    @property
    def handle(self) -> Any:
        return self._handle

    @property
    def n_ctx_train(self) -> int:
        return int(lib.llama_model_n_ctx_train(self._handle))

    def info(self) -> ModelInfo:
        """The model's facts for the user."""
        buffer = ctypes.create_string_buffer(256)
        lib.llama_model_desc(self._handle, buffer, len(buffer))
        return ModelInfo(
            source=LocalFile(self.path),
            name=model_name(self.path, self._meta("general.name")),
            architecture=self._meta("general.architecture"),
            description=buffer.value.decode("utf-8", "replace"),
            size_bytes=int(lib.llama_model_size(self._handle)),
            n_params=int(lib.llama_model_n_params(self._handle)),
            n_ctx_train=self.n_ctx_train,
            n_layer=int(lib.llama_model_n_layer(self._handle)),
            n_vocab=self.vocab.n_tokens,
            has_text=self.vocab.has_text,
            template=self.chat_template,
            bos=self.vocab.text_of(self.vocab.bos),
            eos=self.vocab.text_of(self.vocab.eos),
            license=self._meta("general.license"),
            ends=tuple(sorted(self.vocab.controls[text] for text in self.vocab.ends)),
            infill=self.vocab.infill,
        )

    @property
    def rope_freq_base(self) -> float:
        return float(self._meta(f"{self.facts.architecture}.rope.freq_base") or 0.0)

    @property
    def rope_freq_scale(self) -> float:
        return float(lib.llama_model_rope_freq_scale_train(self._handle))

    def close(self) -> None:
        if self._handle:
            self.vocab.forget_dry()
            lib.llama_model_free(self._handle)
            self._handle = None

    def _hidden_window(self, architecture: str) -> int:
        """The window of an architecture for which llama_model_n_swa says 0 (`model_facts`)."""
        return int(self._meta(f"{architecture}.attention.sliding_window") or 0) if architecture == "deepseek4" else 0

    def _meta(self, key: str) -> str:
        """A metadata value as text, empty when missing."""
        buffer = ctypes.create_string_buffer(_TEXT_BUFFER)
        n = lib.llama_model_meta_val_str(self._handle, key.encode(), buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace") if n >= 0 else ""


@contextmanager
def vocabulary(path: Path) -> Iterator[Vocab]:
    """The vocabulary of a model file, without its weights. Raises ModelFileError."""
    log = engine_log()
    log.forget()
    params = lib.llama_model_default_params()
    params.vocab_only = True
    handle = lib.llama_model_load_from_file(str(path).encode("utf-8", "surrogateescape"), params)
    if not handle:
        raise ModelFileError(
            tr("llama.cpp cannot load {file}: {reason}").format(file=path.name, reason=_reason(log.problems())),
            log.problems(),
        )
    try:
        yield Vocab(handle)
    finally:
        lib.llama_model_free(handle)


def _reason(problems: str) -> str:
    """The most informative line of llama.cpp's errors, without function names."""
    lines = [line for line in problems.splitlines() if "failed to load model" not in line] or problems.splitlines()
    if not lines:
        return tr("it gave no reason.")
    return lines[0].split(": ", 1)[-1].strip().rstrip(".") + "."
