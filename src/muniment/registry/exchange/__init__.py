"""The form of import and export, and how a batch of it becomes rows of the tables."""
