"""The secret keys of the instance: which one the database uses, what is sealed under each, and their rotation."""
