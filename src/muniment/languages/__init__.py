"""The languages of the interface: which catalogues there are, which are offered, and which one a visitor reads."""
