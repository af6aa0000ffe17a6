"""What the first set-up offers: its steps, presets of words and values, and texts to begin legal pages with."""
