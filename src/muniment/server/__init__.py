"""The server: HTTP, processes and the application. It listens first and imports the rest afterwards."""
