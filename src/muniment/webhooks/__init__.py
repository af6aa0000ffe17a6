"""Webhooks: events that the registry sends to URLs of its operators and owners, by Standard Webhooks."""
