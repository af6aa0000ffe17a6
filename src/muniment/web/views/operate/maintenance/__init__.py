"""Maintenance of an instance: keys, the change feed, fetched logos, suppressions and exports."""
