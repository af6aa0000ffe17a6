"""Back up, verify, restore and move an instance as one stream of parts."""
