"""REST on the fast path: cached responses, and details that one look-up answers."""

from collections.abc import Sequence
from typing import Final

import msgspec

from muniment.api.application import Api
from muniment.api.responses import Answer, Response
from muniment.kernel.http.representations import is_known, negotiated

MAX_SEEN: Final = 16_384
"""Targets remembered after their first request, so that the second one caches them."""
_IDENTITY: Final = b""


class Detail(msgspec.Struct, frozen=True, gc=False):
    """A detail that a request needs: its target, kind and key, and its header lines."""

    target: bytes
    kind: str
    key: str
    lines: bytes


class RestAnswers:
    """Immediate responses of *api*."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._cached = api.cache.ready
        self.by_request: dict[bytes, Response] = api.cache.by_request
        """Responses to whole requests by their bytes, for reading; each is a hit of the API's cache."""
        self._details = api.details()
        self._seen = bytearray(8 * MAX_SEEN)
        """One byte per hash of a target. A collision only caches a target too early."""
        self._seen_count = 0

    def get(
        self, target: bytes, accept_encoding: bytes, if_none_match: bytes, answer: Answer | None = None
    ) -> Response | None:
        """Answer a GET from the cache, or with *answer*; return None if nothing is cached or encoding takes long."""
        if answer is None:
            answer = self._cached.get(target)
            if answer is None:
                return None
            self.api.hits += 1
        if if_none_match and is_known(answer.tag, if_none_match):
            return answer.unchanged(answer.encoding(accept_encoding))
        if not accept_encoding:
            return answer.forms.get(_IDENTITY) or answer.make(_IDENTITY)
        return answer.forms.get(negotiated(accept_encoding)) or self.api.encode(
            target, answer, answer.encoding(accept_encoding), at_once=True
        )

    def remember(self, request: bytes, target: bytes, response: Response) -> None:
        """Remember *response* to a GET of *target* by the bytes of the request, while its answer is cached."""
        answer: Answer | None = self._cached.get(target)
        if answer is not None and answer.has(response):
            self.api.cache.remember(request, target, answer, response)

    def not_modified(self, target: bytes, accept_encoding: bytes, if_none_match: bytes) -> Response | None:
        answer: Answer | None = self._cached.get(target)
        if answer is None or not answer.matches(if_none_match):
            return None
        self.api.hits += 1
        return answer.unchanged(answer.encoding(accept_encoding))

    def detail(self, target: bytes) -> Detail | None:
        """Return the detail that *target* needs, unless it is cached: a look-up would replace it and its encodings."""
        if target in self._cached:
            return None
        for prefix, kind, before, after in self._details:
            if target.startswith(prefix):
                key = target[len(prefix) :]
                # Other characters need decoding, or are not part of a key.
                if key.replace(b"-", b"").isalnum():
                    # A link to the proof of the document has the key between these two parts.
                    lines = before + key + after if after else before
                    return Detail(target, kind, key.decode("ascii"), lines)
        return None

    def look_up(self, details: Sequence[Detail]) -> dict[bytes, Answer]:
        """Look up *details* in one query; return the answers of existing ones by target."""
        documents = self.api.reader.documents([(detail.kind, detail.key) for detail in details])
        answers = {}
        for detail in details:
            name = detail.kind, detail.key
            document = documents.get(name)
            if document is not None:
                answer = Answer(document.body, document.etag.encode(), document.modified_at, detail.lines)
                answers[detail.target] = answer
                if self._is_second_request(detail.target):
                    size_bytes, version = len(document.body), document.version
                    self.api.cache.put(detail.target, answer, size_bytes=size_bytes, version=version, depends=(name,))
        self.api.misses += len(answers)
        return answers

    def _is_second_request(self, target: bytes) -> bool:
        """Return whether *target* was requested before: single requests do not displace cached responses."""
        place = hash(target) % len(self._seen)
        if self._seen[place]:
            return True
        if self._seen_count == MAX_SEEN:
            self._seen, self._seen_count = bytearray(len(self._seen)), 0
        self._seen[place] = 1
        self._seen_count += 1
        return False
