"""Mail: every message is a job in the transaction that causes it, so that no request waits for a mail server."""
