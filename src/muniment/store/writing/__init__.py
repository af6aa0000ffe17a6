"""Writing the published tables: documents in groups, and what is counted of them."""
