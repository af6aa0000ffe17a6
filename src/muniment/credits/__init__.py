"""Credits: an append-only, double-entry ledger of whole numbers, with holds and purchases."""
