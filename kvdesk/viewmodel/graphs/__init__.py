"""Everything measured over time: graphs, numbers, exports."""
