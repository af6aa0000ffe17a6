"""What keeps an instance in order: keys, the change feed, fetched logos, suppressions and exports."""
