"""Requests to servers that users name: to public addresses only, bounded in time and size (SSRF protection)."""
