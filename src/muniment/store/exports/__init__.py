"""Whole-registry files: written from one edition, listed, and the same on every node."""
