"""How real servers are started: on loopback, on free ports, in temporary folders."""
