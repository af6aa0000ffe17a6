"""Where django-allauth asks us: who may sign up, where people go, what mail says, how secrets rest."""

import re
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from django.http import HttpRequest

from muniment import config
from muniment.accounts.encryption import seal, unseal

_FACTOR = "second factor"


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth ships no types
    """Signing up and in by the registry's settings, and mail in its name."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:  # noqa: ARG002 - allauth's signature
        """Tell whether anyone may make an account."""
        return config.current().signup

    def format_email_subject(self, subject: str) -> str:
        """Put the registry's name before a subject."""
        return f"[{config.current().registry_name}] {sentence_case(subject)}"

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send a mail that names the registry, and links to it, whatever the request called its host."""
        links = {name: _at_home(value) for name, value in context.items() if name.endswith("_url")}
        super().send_mail(template_prefix, email, {"current_site": _site(), **context, **links})

    def get_client_ip(self, request: HttpRequest) -> str:
        """Give the client's address, which the server has read from trusted proxies already."""
        return str(request.META.get("REMOTE_ADDR") or "127.0.0.1")


class TwoFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth ships no types
    """Second factors: the registry's name on them, and their secrets encrypted at rest."""

    def _get_site_name(self) -> str:
        return config.current().registry_name

    def encrypt(self, text: str) -> str:
        """Encrypt a secret before it is stored."""
        return seal(text.encode(), _FACTOR)

    def decrypt(self, encrypted_text: str) -> str:
        """Decrypt a stored secret."""
        return unseal(encrypted_text, _FACTOR).decode()


def sentence_case(words: str) -> str:
    """Write a heading, a button or a subject in sentence case: the library Writes Them Like This."""
    return re.sub(r"(?<=[\s(-])[A-Z](?=[a-z])", lambda initial: initial[0].lower(), words.strip())


def _at_home(link: str) -> str:
    """Give *link* under the address of the instance: Host is anybody's word, and mail goes to others."""
    base = config.current().base_url
    return base + urlsplit(link)._replace(scheme="", netloc="").geturl() if base else link


def _site() -> SimpleNamespace:
    settings_now = config.current()
    host = settings_now.base_url.partition("://")[2] or (context.request.get_host() if context.request else "")
    return SimpleNamespace(name=settings_now.registry_name, domain=host)
