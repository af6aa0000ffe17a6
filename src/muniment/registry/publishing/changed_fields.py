"""Which members of a published document an update changes, for the change feed and the public history."""

import msgspec

_MOMENTS = frozenset({"updatedAt"})
_decode = msgspec.json.Decoder(dict[str, dict[str, msgspec.Raw]]).decode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def changed_fields(kind: str, before: bytes, after: bytes) -> tuple[str, ...]:
    """Return the names of members that differ between two bodies of a document, in the order of the later one."""
    old, new = _flat(kind, before), _flat(kind, after)
    names = (*new, *(name for name in old if name not in new))
    return tuple(name for name in names if name not in _MOMENTS and old.get(name) != new.get(name))


def known_changes(kind: str, before: bytes, after: bytes) -> tuple[str, ...] | None:
    """Return :func:`changed_fields`; None if the former body is damaged."""
    try:
        return changed_fields(kind, before, after)
    except (msgspec.DecodeError, KeyError, TypeError):
        return None


def _flat(kind: str, body: bytes) -> dict[str, bytes]:
    """Return the encoded members of a document; the members of a company beside its parts."""
    members = _decode(body)["data"]
    every = {**_members(members.pop("company")), **members} if kind == "company" else members
    return {name: bytes(value) for name, value in every.items()}
