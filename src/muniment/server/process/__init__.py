"""Processes: the supervisor, worker processes, listening sockets, polling."""
