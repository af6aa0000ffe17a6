"""A fictional registry to look at and to test with, in the import form."""
