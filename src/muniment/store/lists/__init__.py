"""Which documents a list query selects, in which order, and how many of them have each value of a filter."""
