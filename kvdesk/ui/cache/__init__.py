"""The Cache tab: numbers, positions, links between text and cells."""
