"""
Who may create an account: everyone, people with certain mail domains, and those of certain providers.

Anyone can cause accounts whose address is never confirmed, so they are few and end after hours. The code in the mail is
valid for minutes; a person who comes later signs up again, as if for the first time.
"""

from datetime import datetime, timedelta
from typing import Any, Final

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialLogin, SocialToken
from django import forms
from django.db import transaction
from django.db.models import Exists, ForeignObjectRel, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext

from muniment import config
from muniment.accounts.models import Account
from muniment.accounts.security import origin
from muniment.accounts.security.log import forget_account
from muniment.accounts.security.models import SecurityEvent
from muniment.kernel.ids import now
from muniment.setting_values import Provider, SignUp

SIGN_UPS_OF_A_CLIENT = 60
"""Maximum sign-ups of one client in an hour, as in `ACCOUNT_RATE_LIMITS`."""


def is_open() -> bool:
    """Return whether the pages of this registry create accounts; addresses are checked by the form."""
    settings = config.current()
    return settings.signup.is_open and settings.sign_in == "all"


def is_open_at(sociallogin: SocialLogin) -> bool:
    """Return whether a person who comes from a provider may get an account, by the address that it states first."""
    rule = rule_of(configured_provider(sociallogin))
    stated = [each.email for each in sociallogin.email_addresses]
    return rule.admits(stated[0]) if stated and rule.domains else rule.is_open


def rule_of(provider: Provider | None) -> SignUp:
    settings = config.current()
    return provider.sign_up if provider is not None and provider.sign_up is not None else settings.signup


def configured_provider(sociallogin: SocialLogin) -> Provider | None:
    """Return the configured provider that a person comes from."""
    return next((each for each in config.current().oidc_providers if each.key == sociallogin.account.provider), None)


class SignUpForm(forms.Form):
    """The checks of every form that creates an account; allauth makes this form their base."""

    def clean(self) -> dict[str, Any]:
        """Refuse an address outside the domains that may sign up."""
        super().clean()
        sociallogin = getattr(self, "sociallogin", None)
        rule = rule_of(configured_provider(sociallogin) if sociallogin is not None else None)
        email = self.cleaned_data.get("email")
        if are_too_many():
            raise forms.ValidationError(gettext("Too many people are signing up now. Try again in an hour."))
        if email and not rule.admits(email):
            said = gettext("This registry creates accounts for addresses at %(domains)s. Use yours there.")
            self.add_error("email", said % {"domains": ", ".join(rule.domains)})
        if not self.errors and not origin.take_share(
            "sign-ups", in_all=MAX_UNCONFIRMED, least=SIGN_UPS_OF_A_CLIENT, hours=UNCONFIRMED_HOURS
        ):
            raise forms.ValidationError(
                gettext("Too many people are signing up from your network. Try again in an hour.")
            )
        return self.cleaned_data

    def signup(self, request: HttpRequest, user: Account) -> None:
        """Change nothing: allauth requires the method."""


UNCONFIRMED_FOR: Final = timedelta(hours=3)
UNCONFIRMED_HOURS: Final = 4
"""Hours of the clock in which an account of three hours counts."""
MAX_UNCONFIRMED: Final = 5_000
"""Maximum accounts that are not confirmed; above it, sign-ups are refused until some of them end."""
_BATCH: Final = 200
_OF_A_SIGN_UP: Final = (EmailAddress, Authenticator, SocialAccount, SocialToken, SecurityEvent)
"""Tables in which a sign-up leaves rows; an account with rows elsewhere was used in another way, and stays."""


def are_too_many() -> bool:
    return _unconfirmed().count() >= MAX_UNCONFIRMED


def forget_unconfirmed(*, at: datetime | None = None) -> int:
    """Delete the accounts that signed up hours ago and did not confirm their address; return how many."""
    old = _unconfirmed().filter(joined_at__lt=(at or now()) - UNCONFIRMED_FOR)
    for each in Account._meta.get_fields(include_hidden=True):  # noqa: SLF001 - documented by Django
        table = each.related_model
        if isinstance(each, ForeignObjectRel) and table not in _OF_A_SIGN_UP:
            old = old.exclude(Exists(QuerySet(table).filter(**{each.field.name: OuterRef("pk")})))
    forgotten = 0
    while batch := list(old[:_BATCH]):
        with transaction.atomic():
            for account in batch:
                forget_account(account)
                account.delete()
        forgotten += len(batch)
    return forgotten


def _unconfirmed() -> "QuerySet[Account]":
    confirmed = EmailAddress.objects.filter(user=OuterRef("pk"), verified=True)
    never_in = Account.objects.filter(role=Account.Role.OWNER, last_login=None, deleted_at=None)
    return never_in.exclude(Exists(confirmed))
