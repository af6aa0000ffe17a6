"""Muniment: a registry in a box, for people and for agents."""

__version__ = "0.1.0"
