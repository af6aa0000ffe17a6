"""The search engine: what is indexed, how words are forgiven, and in which order companies and people are found."""
