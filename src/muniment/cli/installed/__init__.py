"""What is installed besides Muniment: optional packages and plugins."""
