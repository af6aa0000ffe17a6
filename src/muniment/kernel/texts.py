"""Text that every part can hold: PostgreSQL keeps no NUL, and UTF-8 no half of a surrogate pair."""


def text_fault(text: str) -> str | None:
    """Say why *text* cannot be kept, or None. PostgreSQL holds no NUL, UTF-8 no half of a surrogate pair."""
    if "\0" in text:
        return "holds the character U+0000"
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds half of a surrogate pair, which is no character"
    return None


def first_text_fault(value: object, path: str = "") -> tuple[str, str] | None:
    """Give the path and the fault of the first text inside *value* (JSON) that cannot be kept, or None."""
    if isinstance(value, str):
        fault = text_fault(value)
        return (path, fault) if fault else None
    if isinstance(value, dict):
        for key, member in value.items():
            if fault := text_fault(key):
                return path, f"has a key that {fault}"
            if found := first_text_fault(member, f"{path}.{key}" if path else key):
                return found
    elif isinstance(value, list):
        for index, member in enumerate(value):
            if found := first_text_fault(member, f"{path}[{index}]"):
                return found
    return None
