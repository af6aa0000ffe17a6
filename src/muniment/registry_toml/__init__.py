"""The identity of the registry: its name, words, vocabularies, brand and texts, as ``registry.toml`` declares them."""
