"""Messages that show once, such as "Saved.", stored in the session; a page shows without them rather than fail."""

from typing import Any

from django.contrib.messages.storage.session import SessionStorage
from django.db import DatabaseError, InterfaceError

from muniment.store.database.retry import is_unavailable


class Notices(SessionStorage):
    """Django's session storage; a public page also works while the database is unavailable."""

    is_without_session = False

    def _get(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super()._get(*args, **kwargs)  # type: ignore[misc]  # private: not in the stubs
        except (DatabaseError, InterfaceError) as error:
            if not is_unavailable(error):
                raise
            self.is_without_session = True
            return [], True

    def _store(self, messages: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        if self.is_without_session and not messages:
            return []
        return super()._store(messages, response, *args, **kwargs)  # type: ignore[misc]  # private: not in the stubs
