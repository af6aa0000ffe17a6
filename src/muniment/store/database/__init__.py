"""The database behind both backends: retry, migrations, consistent snapshots, the counter cache."""
