"""REST version 1: its contract, its answers, its reference page. Without Django."""
