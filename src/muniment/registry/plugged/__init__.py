"""What plugins do with the registry: they check changes before, and hear of publications after."""
