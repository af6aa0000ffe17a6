"""Restore a backup into this process's empty instance and print what it contains. Run as a script: FILE."""

import json
import sys
from pathlib import Path


def main() -> None:
    import django

    django.setup()
    from muniment import config
    from muniment.backup.restoring import restore
    from muniment.backup.snapshot import published_tally
    from muniment.credits.operations import check_ledger
    from muniment.documents import cleanup
    from muniment.registry.publishing import documents
    from muniment.store.database.snapshots import snapshot

    loaded = restore(config.current(), Path(sys.argv[1]))
    found = cleanup.examine()
    with snapshot():
        published = published_tally("default").count()
        rendered = sum(1 for _ in documents.all_documents())
    told = {
        "notes": loaded.notes,
        "ledger": check_ledger(),
        "missing": found.missing,
        "orphans": found.orphans,
        "blobs": loaded.blobs,
        "published": published.n,
        "rendered": rendered,
    }
    print(json.dumps(told))  # noqa: T201 - the test reads it


if __name__ == "__main__":
    main()
