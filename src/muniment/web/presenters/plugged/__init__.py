"""What plugins add to pages."""
