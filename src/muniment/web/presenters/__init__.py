"""Published records in the form that templates show."""
