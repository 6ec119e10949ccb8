"""The guided tour, the self-test, and benchmarks of the window."""

UI_ROWS = ("frames", "messages", "decoding", "lab")
"""What `bench_ui` can measure by itself; here, since it needs Qt."""
