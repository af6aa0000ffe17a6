"""What the pages over many listings show."""
