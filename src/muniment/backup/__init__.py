"""The instance as one stream of parts: written to a file, proved, loaded into an empty instance."""
