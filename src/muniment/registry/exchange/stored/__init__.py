"""What is stored of the rows of a batch."""
