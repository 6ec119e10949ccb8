"""The memory of a context with its mirror: guarded, decoded, saved, restored and audited."""
