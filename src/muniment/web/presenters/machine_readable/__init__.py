"""What other programs read of the pages: JSON-LD in the vocabulary of schema.org, and Atom."""
