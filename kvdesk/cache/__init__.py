"""The KV cache of a context, reproduced cell by cell with the engine's own rules, and what can be computed from it.

    mirror      the whole memory; follows the engine call by call        geometry   which caches, how many cells
      memories    one of the engine's each, and one stream's cells       batch      what is refused, how it is cut
      seq_bits    sets of sequences as bits                              record     what an operation did
    verify      mirror against engine: first difference, in words        snapshot   frozen views for others
      dump, creation   the engine's lines, read                          metrics    numbers that follow from cells
      state            its bytes, read and cut                           difference cells that differ in two maps
    journal     every operation and what it changed, any earlier map     compare    what did that do?
      flat        every cell as a row of arrays                          pages      what paging would hold
    reuse       what a prompt finds in the cache, and why not more       spread     a state with cells at their places
    compaction  a state blob with its cells in another order

No Qt, no llama_cpp: numbers and bytes come in. The rules are those of llama.cpp 0c1e57098 (llama-cpp-python 0.3.36);
where it has a bug the mirror has it too.
"""
