"""Operations on the cache by hand."""
