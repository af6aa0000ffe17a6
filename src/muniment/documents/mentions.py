"""The texts of documents, among which a person who was erased is looked for."""

from muniment.documents.models import Document, Page
from muniment.registry.people.mentions import TEXTS, Searched


def _document(row: Document) -> tuple[str, str]:
    return f"{row.company.slug}: {row.filename}", f"/review/companies/{row.company.slug}"


def register() -> None:
    TEXTS.append(Searched(Document, "document", _document, ("company",)))
    TEXTS.append(
        Searched(Page, "text of a document", lambda row: _document(row.document), ("document", "document__company"))
    )
