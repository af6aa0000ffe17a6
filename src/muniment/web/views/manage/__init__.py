"""Pages for signed-in owners: their listings, documents, reports, credits and access."""
