"""Operations on the cache by hand, and their undo."""
