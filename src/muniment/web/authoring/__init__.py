"""Help for owners who write a listing: previews of drafts, checks, completed addresses, pasted tables."""
