"""Who may create an account: everyone, people with certain mail domains, and those of certain providers."""

from typing import Any

from allauth.socialaccount.models import SocialLogin
from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext

from muniment import config
from muniment.accounts.identities import unconfirmed
from muniment.accounts.models import Account
from muniment.accounts.security import shares
from muniment.setting_values import Provider, SignUp

SIGN_UPS_OF_A_CLIENT = 60
"""In an hour; `ACCOUNT_RATE_LIMITS` has the same."""


def is_open() -> bool:
    """Return whether the pages of this registry create accounts; addresses are checked by the form."""
    settings = config.current()
    return settings.signup.is_open and settings.sign_in == "all"


def is_open_at(sociallogin: SocialLogin) -> bool:
    """Return whether a person who comes from a provider may get an account, by the address that it states first."""
    rule = rule_of(provider_of(sociallogin))
    stated = [each.email for each in sociallogin.email_addresses]
    return rule.admits(stated[0]) if stated and rule.domains else rule.is_open


def rule_of(provider: Provider | None) -> SignUp:
    settings = config.current()
    return provider.sign_up if provider is not None and provider.sign_up is not None else settings.signup


def provider_of(sociallogin: SocialLogin) -> Provider | None:
    """Return the configured provider that a person comes from."""
    return next((each for each in config.current().oidc_providers if each.key == sociallogin.account.provider), None)


class SignUpForm(forms.Form):
    """What every form that creates an account checks; allauth makes it their base."""

    def clean(self) -> dict[str, Any]:
        """Refuse an address outside the domains that may sign up."""
        super().clean()
        sociallogin = getattr(self, "sociallogin", None)
        rule = rule_of(provider_of(sociallogin) if sociallogin is not None else None)
        email = self.cleaned_data.get("email")
        if unconfirmed.are_too_many():
            raise forms.ValidationError(gettext("Too many people are signing up now. Try again in an hour."))
        if email and not rule.admits(email):
            said = gettext("This registry creates accounts for addresses at %(domains)s. Use yours there.")
            self.add_error("email", said % {"domains": ", ".join(rule.domains)})
        if not self.errors and not shares.take_share(
            "sign-ups", in_all=unconfirmed.MAX_UNCONFIRMED, least=SIGN_UPS_OF_A_CLIENT, hours=unconfirmed.HOURS
        ):
            raise forms.ValidationError(
                gettext("Too many people are signing up from your network now. Try again in an hour.")
            )
        return self.cleaned_data

    def signup(self, request: HttpRequest, user: Account) -> None:
        """Change nothing: allauth requires the method."""
