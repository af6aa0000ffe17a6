"""Everything that the registry stores about an account: its export and its deletion."""
