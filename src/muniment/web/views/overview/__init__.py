"""Public pages over many listings: the front page, comparisons, the map and the network of people."""
