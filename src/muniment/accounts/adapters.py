"""Adapters of django-allauth and Django: sign-up, redirects, mail, encrypted second factors, passwords."""

import copy
import logging
import re
import threading
from contextlib import AbstractContextManager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlsplit

from allauth.account import app_settings
from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context as current
from allauth.core.exceptions import ImmediateHttpResponse, ReauthenticationRequired
from allauth.mfa.adapter import DefaultMFAAdapter
from cryptography.fernet import InvalidToken
from django.contrib import messages
from django.contrib.auth import password_validation
from django.contrib.auth.hashers import Argon2PasswordHasher, make_password
from django.contrib.auth.models import AnonymousUser
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext

from muniment import config
from muniment.accounts import identity_providers, sign_up
from muniment.accounts.models import Account
from muniment.accounts.security import origin, step_up
from muniment.accounts.security.events import browser
from muniment.encryption import seal, unseal
from muniment.kernel.http.addresses import unmapped
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import Forbidden, TooMany
from muniment.languages.catalogues import SOURCE
from muniment.languages.speaking import language, speaking
from muniment.mail import outgoing
from muniment.mail.receivers import in_language_of
from muniment.registry_toml import applied

VISITORS_MAILS_AN_HOUR = 3_000
"""Codes and notices to people who are not signed in, from all addresses together."""
MAILS_OF_A_CLIENT = 180
"""Maximum messages that one client may cause in an hour: `ACCOUNT_RATE_LIMITS` permits 60 of each of three kinds."""
BY_EMAIL = "confirm_by_email"
_FACTOR = "second factor"
log = logging.getLogger(__name__)


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth ships no types
    """Sign-up and sign-in by the registry's settings, and mail in its name."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:  # noqa: ARG002 - allauth's signature
        return sign_up.is_open()

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Check no password where people sign in only at providers."""
        if identity_providers.are_required():
            raise ImmediateHttpResponse(_only_at_providers(request))
        super().pre_authenticate(request, **credentials)

    def pre_login(self, request: HttpRequest, user: Account, **login: Any) -> HttpResponse | None:
        """Refuse every sign-in that did not come from a provider, where only these are permitted."""
        came = "sociallogin" in (login.get("signal_kwargs") or {}) or identity_providers.came_by_provider(request, user)
        if identity_providers.are_required() and not came:
            return _only_at_providers(request)
        return cast("HttpResponse | None", super().pre_login(request, user, **login))

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        """Lead reviewers to their queue, and others to their listings."""
        is_reviewer = isinstance(request.user, Account) and request.user.role != Account.Role.OWNER
        return "/review" if is_reviewer else str(super().get_login_redirect_url(request))

    def is_safe_url(self, url: str) -> bool:
        """Return whether a sign-in may lead to *url*; an address that cannot be read is refused like another host."""
        try:
            return bool(super().is_safe_url(url))
        except ValueError:
            return False

    def format_email_subject(self, subject: str) -> str:
        return f"[{applied.registry_name()}] {sentence_case(subject)}"

    def send_mail(self, template_prefix: str, email: str, context: JSONObject) -> None:
        """Send a mail with the registry's name and base URL, regardless of the request's Host."""
        links = {name: _at_home(value) for name, value in context.items() if name.endswith("_url")}
        values = {"request": current.request, "email": email, "current_site": _site(), **context, **links}
        kind = template_prefix.rpartition("/")[2]
        if current.request is not None and not current.request.user.is_authenticated:
            _hold_visitors_to_rate()
        expires_at = now() + _code_lasts(kind) if "code" in context else None
        with _in_language_for(email):
            message = self.render_mail(template_prefix, email, values)
            outgoing.send_message(message, kind=kind, expires_at=expires_at)

    def send_account_already_exists_mail(self, email: str) -> None:
        """Send the owner of an address that it has an account, after as long as another takes to create one."""
        if current.request is not None and (password := current.request.POST.get("password1")):
            make_password(password)
        super().send_account_already_exists_mail(email)

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the client's address, which the server has already read from trusted proxies."""
        return unmapped(str(request.META.get("REMOTE_ADDR") or "127.0.0.1"))

    def is_reauthentication_required(self, *, app: str, **options: Any) -> bool:  # noqa: ARG002 - allauth's signature
        """
        Return False after a recent sign-in; changes of email addresses, identities and factors all need one.

        Raises:
            ReauthenticationRequired: otherwise. True would not do: allauth takes accounts without a password and
                without factors as confirmed.
        """
        if current.request is None or not step_up.is_confirmed(current.request):
            raise ReauthenticationRequired
        return False

    def get_reauthentication_methods(self, user: Account | AnonymousUser) -> list[JSONObject]:
        """Return the ways to confirm an identity: the account's own, its identity provider, or a mailed code."""
        methods: list[JSONObject] = super().get_reauthentication_methods(user)
        said = {
            "reauthenticate": gettext("Use your password"),
            "mfa_reauthenticate": gettext("Use a code from your app, or a recovery code"),
            "mfa_reauthenticate:webauthn": gettext("Use a passkey or security key"),
        }
        ways = [{**each, "description": said.get(each["id"], each["description"])} for each in methods]
        if not isinstance(user, Account):
            return ways
        has_own = bool(ways)
        if provider := identity_providers.provider_of(current.request, user):
            words = gettext("Sign in at %(provider)s") % {"provider": provider.name}
            ways.append({"id": "provider", "description": words, "url": reverse(identity_providers.PAGE)})
        if not has_own:
            ways.append({"id": "email", "description": gettext("Email me a code"), "url": reverse(BY_EMAIL)})
        return ways


class TwoFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth ships no types
    """Second factors: issued in the registry's name, with secrets encrypted at rest."""

    def _get_site_name(self) -> str:
        return applied.registry_name()

    def generate_authenticator_name(self, user: Account, type: str) -> str:  # noqa: A002, ARG002 - allauth's signature
        """Return the browser and system that a passkey or key is added on: "Chrome on Linux"."""
        agent = current.request.headers.get("User-Agent", "") if current.request else ""
        return browser(agent)

    def encrypt(self, text: str) -> str:
        return seal(text.encode(), _FACTOR)

    def decrypt(self, encrypted_text: str) -> str:
        """Decrypt a secret; raise Forbidden if the secret key is missing under which it was encrypted."""
        try:
            return unseal(encrypted_text, _FACTOR).decode()
        except InvalidToken:
            log.error("a second factor does not open with the secret keys of this node; see: muniment keys")  # noqa: TRY400 - the trace has no more to say
            raise Forbidden(
                gettext("Your second factor cannot be checked: the registry's secret key has changed."),
                gettext("Sign in with a passkey if you have one, or ask the operator to remove your second factors."),
            ) from None


def _hold_visitors_to_rate() -> None:
    """Raise TooMany if visitors of this site, or all visitors together, have caused too many messages this hour."""
    at = now()
    wait_s = 3_600 - at.minute * 60 - at.second
    hint = Phrase("Try again in {minutes} minutes.", minutes=wait_s // 60 + 1)
    if not origin.take_share("mails", in_all=VISITORS_MAILS_AN_HOUR, least=MAILS_OF_A_CLIENT, hours=1):
        raise TooMany("Too many codes were sent to your network this hour.", hint, retry_after_s=wait_s)
    key = f"visitors-mails:{at:%Y%m%d%H}"
    cache.add(key, 0, timeout=3_700)
    if cache.incr(key) > VISITORS_MAILS_AN_HOUR:
        raise TooMany("This registry can't send more codes this hour.", hint, retry_after_s=wait_s)


def _only_at_providers(request: HttpRequest) -> HttpResponse:
    names = " / ".join(each.name for each in config.current().oidc_providers)
    messages.error(request, gettext("This registry lets people sign in only at %(providers)s.") % {"providers": names})
    return HttpResponseRedirect(reverse("account_login"))


def sentence_case(words: str) -> str:
    """Convert a heading, button or subject to sentence case: allauth uses title case."""
    if language() != SOURCE:
        return words.strip()  # other languages write their words as they are
    return re.sub(r"(?<=[\s(-])[A-Z](?=[a-z])", lambda initial: initial[0].lower(), words.strip())


def _code_lasts(kind: str) -> timedelta:
    """Return how long the code in a mail is valid."""
    by_kind = {
        "login_code": app_settings.LOGIN_BY_CODE_TIMEOUT,
        "step_up_code": app_settings.LOGIN_BY_CODE_TIMEOUT,
        "password_reset_code": app_settings.PASSWORD_RESET_BY_CODE_TIMEOUT,
    }
    return timedelta(seconds=by_kind.get(kind, app_settings.EMAIL_VERIFICATION_BY_CODE_TIMEOUT))


def _at_home(link: str) -> str:
    """Return *link* under the base URL: anyone can set Host, but mail goes to other people."""
    base = config.current().base_url
    return base + urlsplit(link)._replace(scheme="", netloc="").geturl() if base else link


def _site() -> SimpleNamespace:
    settings_now = config.current()
    host = settings_now.base_url.partition("://")[2] or (current.request.get_host() if current.request else "")
    return SimpleNamespace(name=applied.registry_name(), domain=host)


class CommonPasswordValidator(password_validation.CommonPasswordValidator):
    """Django's validator without its list of 20,000 passwords, which would take 1.7 MB of every process."""

    def __init__(self) -> None:
        """Read nothing yet."""

    def validate(self, password: str, user: Any = None) -> None:
        """Read the list, about 10 ms, and raise ValidationError if *password* is in it."""
        password_validation.CommonPasswordValidator().validate(password, user)


_HASHING = threading.Lock()


class PasswordHasher(Argon2PasswordHasher):
    """
    Argon2, one hash at a time and on one core, so that sign-in attempts do not take the processor from other requests.

    A hash needs 0.2 s of CPU and 100 MB. Eight lanes, Django's default, would start eight threads for each.
    """

    parallelism = 1

    def encode(self, password: str, salt: str) -> str:
        with _HASHING:
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        with _HASHING:
            return super().verify(password, encoded)

    def must_update(self, encoded: str) -> bool:
        """Return whether a hash is weaker. More lanes are not, and a new hash would end the account's sessions."""
        alike = copy.copy(self)
        alike.parallelism = self.decode(encoded)["parallelism"]
        return super(PasswordHasher, alike).must_update(encoded)


def _in_language_for(email: str) -> AbstractContextManager[None]:
    """Use the language of the account with this address; of the visitor, if there is none or it has not chosen one."""
    account = Account.objects.filter(email=email.strip().lower()).first()
    return in_language_of(account) if account is not None and account.language else speaking(language())
