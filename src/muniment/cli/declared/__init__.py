"""Commands about declared fields."""
