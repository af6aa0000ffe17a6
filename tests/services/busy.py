"""Write without a pause while backups are taken. Run as a script; ends on a signal."""

import itertools
import threading
import time
from collections.abc import Callable


def main() -> None:
    import django

    django.setup()
    from django.db import connections

    from make import registry
    from muniment.accounts.models import Account
    from muniment.credits.operations import grant
    from muniment.documents.models import Document
    from muniment.documents.uploads import remove_blob, store_document
    from muniment.kernel.actor import COMMAND

    account, _ = Account.objects.get_or_create(email="busy@harbour.example")
    owner = account.actor("web", "pages")
    company = registry.draft(owner, name="Busy Harbour").slug
    written = itertools.count(1)

    def publish() -> None:
        registry.published(owner, name=f"Quay {next(written)}", description="Boats come and go. " * 20)

    def upload_and_remove() -> None:
        content = b"What the tide brought. " * (200 + next(written) % 400)
        document = store_document(owner, company, "tide.txt", [content], len(content))
        if next(written) % 2:
            # As the clean-up does with documents deleted 30 days ago.
            found = Document.objects.filter(company__slug=company).order_by("pk").first() or document
            found.delete()
            remove_blob(found.blob_key)

    def pay() -> None:
        grant(COMMAND, account.email, 1, key=f"busy {next(written)}")

    def for_ever(work: Callable[[], None]) -> None:
        try:
            while True:
                work()
                time.sleep(0.01)  # leaves time for other processes
        finally:
            connections.close_all()

    threads = [
        threading.Thread(target=for_ever, args=(work,), daemon=True) for work in (publish, upload_and_remove, pay)
    ]
    for thread in threads:
        thread.start()
    print("writing", flush=True)  # noqa: T201 - the test waits for this line
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
