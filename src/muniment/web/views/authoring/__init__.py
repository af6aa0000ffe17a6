"""Pages on which owners write a listing: its form, preview, check, pasted tables and the choice of people."""
