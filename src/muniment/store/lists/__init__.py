"""List queries: the documents that a query selects, their order, and how many of them have each value of a filter."""
