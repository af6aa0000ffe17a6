"""
The answers of identity providers, as they really are.

Large providers send `email_verified` as text, leave members out, or have no user information. An answer that cannot be
read is a failed sign-in with a page, never an error of the server.

Source: OpenID Connect Core 1.0, sections 3.1.3.7, 5.1 and 5.3.2.
"""

from typing import Any, Final

from allauth.socialaccount.models import SocialLogin
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest

from muniment.kernel.texts import first_text_fault

# The last one is what allauth raises for a subject of more than 191 characters; known providers send at most 100.
_UNREADABLE: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError, ImproperlyConfigured)


class ProviderAnswers(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # allauth ships no types
    """Reads the tokens and the user information of a provider; raises OAuth2Error for what cannot be read."""

    def parse_token(self, data: Any) -> Any:
        try:
            return super().parse_token(data)
        except _UNREADABLE as error:
            raise OAuth2Error("the token response cannot be read") from error

    def complete_login(self, request: HttpRequest, app: Any, token: Any, **answer: Any) -> SocialLogin:
        """Return whom the provider states; without an endpoint for user information, by the ID token alone."""
        try:
            if not self.openid_config.get("userinfo_endpoint"):
                app.settings = {**app.settings, "fetch_userinfo": False}
            return super().complete_login(request, app, token, **answer)
        except _UNREADABLE as error:
            raise OAuth2Error("the answer about the person cannot be read") from error


def require_one_person(sociallogin: SocialLogin) -> None:
    """Raise OAuth2Error if the user information is about another person than the ID token, or none can be told."""
    uid = sociallogin.account.uid
    if not uid or first_text_fault(uid):
        raise OAuth2Error("the subject cannot be stored")
    answer = sociallogin.account.extra_data or {}
    told, token = answer.get("userinfo"), answer.get("id_token")
    if told is not None and token is not None and told.get("sub") != token.get("sub"):
        raise OAuth2Error("the user information is about another person than the ID token")


def read_verified(sociallogin: SocialLogin) -> None:
    """Read whether addresses are verified: true, or that word as text, as some providers send it; else not."""
    for each in sociallogin.email_addresses:
        each.verified = each.verified is True or (isinstance(each.verified, str) and each.verified.lower() == "true")
