"""Companies: what owners may edit, the operations on a listing, its pictures."""
