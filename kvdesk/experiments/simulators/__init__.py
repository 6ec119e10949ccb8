"""Caches of other engines, simulated: what they would have done with a history that llama.cpp's cells really had.

    block_pool    blocks, reference counts, the order of eviction     paged_cache   vLLM's block tables on them
    radix_cache   SGLang's tree of tokens                             replay        a history, put to one of them
    live_cells    llama.cpp's own cells during a recording            hole_filling  llama.cpp's former defragmentation
    compactions   what defragmenting in several ways would move

Numbers only: no model, no llama.cpp, no clocks. Written from the rules of those engines, which each file names.
"""
