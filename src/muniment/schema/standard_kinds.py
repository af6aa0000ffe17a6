"""Kinds of values with a form that standards or networks define: days, email addresses, profiles."""

from muniment.kernel.wire import parse_timestamp
from muniment.schema.kinds import DATE_RULE, Text, is_plausible_year, is_web_address
from muniment.schema.validation import shown


class Day(Text, frozen=True):
    """A day, or a moment of it, that is stored as it was given."""

    def form_fault(self, text: str) -> str:
        try:
            parse_timestamp(text if len(text) != 10 else f"{text}T00:00:00Z")
        except ValueError:
            is_real = False
        else:
            is_real = is_plausible_year(text)
        return "" if is_real else f"must be {DATE_RULE}, not {shown(text)}"


class Email(Text, frozen=True):
    """An email address. Whether it receives mail is not looked up."""

    def form_fault(self, text: str) -> str:
        from email_validator import EmailNotValidError, validate_email  # late: 50 ms, which no read needs

        try:
            validate_email(text, check_deliverability=False)
        except EmailNotValidError:
            return f"must be an email address such as office@example.org, not {shown(text)}"
        return ""


class Profile(Text, frozen=True):
    """A profile on a network: a web address, or a name there."""

    def form_fault(self, text: str) -> str:
        is_name = ":" not in text and not text.startswith("//")
        if is_name or is_web_address(text):
            return ""
        return f"must be a web address such as https://example.org or the name of a profile, not {shown(text)}"
