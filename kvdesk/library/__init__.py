"""Models on disk: read their headers, estimate their memory, find them. Imports neither engine nor Qt."""
