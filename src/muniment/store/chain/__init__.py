"""The chain over the change feed: a hash for each number, by which two histories are told apart."""
