"""The guided tour, the self-test, and benchmarks of the window."""
