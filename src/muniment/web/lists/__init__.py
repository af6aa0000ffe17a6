"""The list pages: what is asked of a list, its filters with counts, and the links that change them."""
