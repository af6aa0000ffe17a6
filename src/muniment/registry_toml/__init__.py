"""What the registry is: its name, words, vocabularies, brand and texts, as ``registry.toml`` declares them."""
