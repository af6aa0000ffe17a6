"""Credits: integers in an append-only ledger of two sides, and what is held of them."""
