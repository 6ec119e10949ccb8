"""The architectures of the pinned llama.cpp, and what kind of memory each has.

Owns these lists (src/llama-arch.cpp: `LLM_ARCH_NAMES` without what cannot chat, `llm_arch_is_recurrent`,
`llm_arch_is_hybrid`; src/models/: window patterns). Knows nothing of files.
"""

from typing import NamedTuple

LANGUAGE_MODELS = frozenset(
    """
    afmoe apertus arcee arctic arwkv7 baichuan bailingmoe bailingmoe2 bailingmoe3 bitnet bloom chameleon chatglm
    codeshell cogvlm cohere2 cohere2moe command-r dbrx deci deepseek deepseek2 deepseek2-ocr deepseek32 deepseek4
    dots1 dots3note ernie4_5 ernie4_5-moe exaone exaone-moe exaone4 falcon falcon-h1 gemma gemma2 gemma3 gemma3n
    gemma4 glm-dsa glm4 glm4moe glm5-next gpt-oss gpt2 gptj gptneox granite granite_swa granitehybrid granitemoe
    graniteswitch grok grovemoe hrm_text hunyuan-dense hunyuan-moe hunyuan_vl hy_v3 hy_v4 internlm2 jais jais2 jamba
    kimi-k3 kimi-linear laguna lfm2 lfm2moe llama llama4 maincoder mamba mamba2 maple mellum mimo2 minicpm minicpm3
    minimax-01 minimax-m2 minimax-m3 mistral3 mistral4 mpt muse-glimmer nanbeige nemotron nemotron_h nemotron_h_moe
    olmo olmo2 olmoe openelm orion paddleocr pangu-embedded phi2 phi3 phimoe plamo plamo2 plamo3 plm qwen qwen2
    qwen2moe qwen2vl qwen3 qwen35 qwen35moe qwen3moe qwen3next qwen3vl qwen3vlmoe qwen4exp refact rwkv6 rwkv6qwen2
    rwkv7 seed_oss smallthinker smollm3 spark2_5 stablelm starcoder starcoder2 step35 talkie xverse
    """.split()  # noqa: SIM905  # pages of quoted names otherwise
)
RECURRENT = frozenset({"mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"})
HYBRID = frozenset(
    """
    jamba falcon-h1 plamo2 granitehybrid lfm2 lfm2moe nemotron_h nemotron_h_moe qwen3next kimi-linear bailingmoe3
    kimi-k3 glm5-next qwen35 qwen35moe qwen4exp deepseek4 minimax-01
    """.split()  # noqa: SIM905  # pages of quoted names otherwise
)
INTERVAL_HYBRID = frozenset({"qwen3next", "qwen35", "qwen35moe", "qwen4exp", "minimax-01"})  # every n-th layer attends


class Window(NamedTuple):
    """Sliding windows where the file does not say: of `pattern` layers in a row all but one have a window."""

    pattern: int
    default: int = 0  # window where the file has no `sliding_window`; 0: then there are no windows
    dense_first: bool = False  # the layer without a window is the first of each row, not the last


WINDOWS = {
    "cohere2": Window(4),
    "exaone4": Window(4, 4096),  # of its sizes only the one with 64 layers
    "gemma2": Window(2, 4096),
    "gemma3": Window(6),
    "gemma3n": Window(5),
    "gpt-oss": Window(2),
    "llama4": Window(4, 8192),
    "olmo2": Window(4),
    "smallthinker": Window(4, 0, dense_first=True),
}
WITHOUT_WINDOWS = frozenset({"llama", "phi3", "qwen2", "qwen2moe", "qwen3", "qwen3moe"})
"""llama.cpp ignores the windows of their files."""

WITHOUT_ROPE = frozenset({"bloom", "gpt2", "jais", "mpt", "refact", "starcoder"})
