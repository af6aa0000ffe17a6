"""Verification of the published file: its pages, its rows, its index tables, and the exports made from it."""
