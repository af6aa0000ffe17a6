"""The stored values of declared fields."""
