"""What helps owners write a listing: drafts as they will look, checks, completed addresses, pasted tables."""
