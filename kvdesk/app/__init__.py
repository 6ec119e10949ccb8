"""The composition root: builds window, worker and store, wires them, and owns the order of shutdown."""
