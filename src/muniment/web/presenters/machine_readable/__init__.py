"""Pages for other programs: JSON-LD in the vocabulary of schema.org, and Atom."""
