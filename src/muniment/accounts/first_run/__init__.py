"""The first set-up of an instance: a one-time link, the first operator, and the steps that were taken."""
