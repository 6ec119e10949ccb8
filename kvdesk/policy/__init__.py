"""Decisions about the cache and the machine, made from values. Every decision carries its reason.

    threads        how many threads decode, from measured ms and the machine's load
      decode_speed what one token is known to cost        load   processor time that other processes take
    batching       one batch a step over all turns        prefix_tree  what the cache holds, by token ids
    overflow       what leaves when a context is full     swap   which conversation leaves, which snapshot is dropped
    compaction_gain  whether compacting pays back         forecast  what sending will cost

Must never know the engine, Qt or a database: whoever asks also carries out. Clocks come in as numbers; only `load`
reads one thing from the system.
"""
