"""The KV cache of a context, reproduced cell by cell with the engine's own rules, and what can be computed from it.

    mirror      the whole memory; follows the engine call by call        geometry   which caches, how many cells
      attention   one cache: its streams, placing and taking back        batch      what is refused, how it is cut
        cells       one stream: positions, sequences, head               record     what an operation did
      recurrent   one state per sequence                                 snapshot   frozen views for others
    verify      mirror against engine: first difference, in words        metrics    numbers that follow from cells
      dump, blob, creation   the engine's text and bytes, read           rebuild    cells taken from a dump
    journal     every operation and what it changed                      difference cells that differ in two maps
      recording   segments, keyframes, any earlier map                   compare    what did that do?
        packing, flat   operations as bytes, cells as flat arrays        explain    why did this turn prefill?
      journal_file, journal_runs   as JSON lines, and back               pages      what paging would hold
    compaction  a state blob with its cells in another order

No Qt, no llama_cpp: numbers and bytes come in. The rules are those of llama.cpp 0c1e57098 (llama-cpp-python 0.3.36);
where it has a bug the mirror has it too.
"""
