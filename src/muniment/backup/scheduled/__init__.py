"""Scheduled backups: made while serving, verified, pruned by a retention rule, and restored as of a time."""
