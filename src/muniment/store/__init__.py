"""Where things stand: the database gate, the published file, its reader and its follower."""
