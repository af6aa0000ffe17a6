"""Report runs: a framework's private specification held against what a company shows."""
