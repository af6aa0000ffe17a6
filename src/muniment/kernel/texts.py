"""Check text for what storage rejects: PostgreSQL rejects NUL, and UTF-8 rejects unpaired surrogates."""


def text_fault(text: str) -> str | None:
    """Return why *text* cannot be stored, or None."""
    if "\0" in text:
        return "contains the character U+0000"
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return "contains an unpaired surrogate"
    return None


def first_text_fault(value: object, path: str = "") -> tuple[str, str] | None:
    """Return the path and the fault of the first text in *value* (JSON) that cannot be stored, or None."""
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
