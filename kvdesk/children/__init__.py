"""Child processes: `process` is the parent's side, `entry` the child's. Knows nothing of what a child does."""
