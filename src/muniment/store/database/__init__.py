"""Database helpers for both backends: retry, migrations, consistent snapshots, the counter cache."""
