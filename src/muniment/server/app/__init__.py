"""The ASGI application: start-up, readiness, threads, metrics, logs and traces."""
