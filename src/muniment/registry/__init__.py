"""The registry: companies, people, frameworks, their owners and their history."""
