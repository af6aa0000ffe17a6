"""Reading import files: which there are, their lines, and batches of rows."""
