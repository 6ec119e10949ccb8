"""PyInstaller: the engine's libraries are opened by name, so no import tells of them.

Those of the portable build for each kind of processor are opened by ggml itself. Only the names that are asked for are
taken: `libllama.so` (llama-cpp-python), `libggml.so.0` (the linker), not the third copy with the whole version.
"""

from __future__ import annotations

import re
from pathlib import Path

from PyInstaller.utils.hooks import get_package_paths

_folder = Path(get_package_paths("llama_cpp")[1]) / "lib"
_wanted = re.compile(r"(lib)?(llama|ggml(-base|-metal|-blas|-cpu[\w-]*)?)\.(so(\.\d+)?|(\d+\.)?dylib|dll)")

binaries = [(str(file), "llama_cpp/lib") for file in sorted(_folder.iterdir()) if _wanted.fullmatch(file.name)]
excludedimports = ["llama_cpp.server", "llama_cpp.mtmd_cpp", "llama_cpp.llava_cpp"]
