"""A person on the pages of a running product; every cookie is recorded."""

from typing import Self

import httpx


class Visitor:
    """
    A browser's cookies and forms over HTTP.

    Args:
        url: the product's address.
        used: secrets with their descriptions; every cookie is added.
    """

    def __init__(self, url: str, used: dict[str, str]) -> None:
        self._used = used
        hooks = {"response": [self._note]}
        self.web = httpx.Client(base_url=url, follow_redirects=True, event_hooks=hooks, timeout=60)

    def _note(self, response: httpx.Response) -> None:
        self._used |= {
            cookie.value: f"{cookie.name} cookie"
            for cookie in response.cookies.jar
            if cookie.value and cookie.name != "signed_in"  # says only that an account is
        }

    def get(self, path: str) -> str:
        """Open an existing page."""
        answer = self.web.get(path)
        assert answer.status_code == 200, answer
        return answer.text

    def send(self, path: str, *, follow: bool = True, **fields: str) -> httpx.Response:
        """Submit a form, wherever that leads."""
        if "csrftoken" not in self.web.cookies:
            self.web.get("/accounts/login/")
        form = {**fields, "csrfmiddlewaretoken": self.web.cookies["csrftoken"]}
        return self.web.post(path, data=form, follow_redirects=follow)

    def post(self, path: str, **fields: str) -> httpx.Response:
        """Submit a form successfully: the response redirects to another page."""
        answer = self.send(path, **fields)
        assert answer.status_code == 200, answer
        assert answer.history, f"{path} was not taken: {answer.text}"
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.web.close()
