"""The experiments, a module for each question; `docs/questions` has a page for each."""
