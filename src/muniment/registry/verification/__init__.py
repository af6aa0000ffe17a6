"""Proof that an account controls the domain of a listing's website: by DNS, by a file, or by a mailed code."""
