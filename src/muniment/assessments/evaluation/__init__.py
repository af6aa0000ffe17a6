"""Evaluate a company against a specification. Pure: the same input gives the same report."""
