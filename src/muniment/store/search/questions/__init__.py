"""
Questions in plain words, read as filters: ``which DAOs on solar energy are raising`` is a type, a flag and a text.

The words are those of the registry's own values and of a small grammar, which a file per language gives its words.
"""
