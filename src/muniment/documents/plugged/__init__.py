"""Storage in stores of plugins."""
