"""The ASGI application and what it needs: start-up, readiness, threads, metrics, logs, traces."""
