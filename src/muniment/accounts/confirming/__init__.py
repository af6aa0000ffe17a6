"""Ways to confirm an identity that allauth has no pages for: at the identity provider, and by a mailed code."""
