"""Processes: the supervisor, worker processes, listening sockets and polling."""
