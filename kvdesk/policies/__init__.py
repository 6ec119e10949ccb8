"""Decisions about the cache and the machine, made from values. Every decision carries its reason.

    threads          how many threads decode          batching  what the next batch holds, over all turns
      load           processor time others take       forecast  what sending will cost
    overflow         what a full context evicts       costs     what batches and states take, learned
    compaction_gain  whether compacting pays back
    tuned            every tuned number               prompt_piece  how much of a prompt is read at once
    swap             which conversation is evicted, where to, which saved state gives way

Must never know the engine, Qt or a database: whoever asks also carries out. Clocks come in as numbers; only `load`
reads one thing from the system.
"""
