"""
Roles by the groups that an identity provider states: set at each sign-in there.

A provider without groups for roles changes none. With them, a person in none of the groups loses the roles that it
gives, and keeps any other.
"""

from typing import Any, Final

from allauth.socialaccount.models import SocialLogin

from muniment.accounts.identities.sign_up import provider_of
from muniment.accounts.models import Account
from muniment.accounts.operations import set_role
from muniment.kernel.actor import SYSTEM
from muniment.kernel.json import JSONObject
from muniment.setting_values import Provider

MOST_GROUPS: Final = 5_000
"""A person may be in this many; of more, the first count."""


def set_role_from(sociallogin: SocialLogin, account: Account) -> None:
    """Set the role of an account by the claims of its sign-in, which the audit log shows."""
    provider = provider_of(sociallogin)
    if provider is None or not provider.roles:
        return
    role = role_for(provider, sociallogin.account.extra_data or {}, account.role)
    if role != account.role:
        account.role = set_role(SYSTEM, account.email, role).role


def role_for(provider: Provider, claims: JSONObject, present: str) -> str:
    """
    Return the role by the groups of an ID token or of the user information.

    Args:
        claims: both, by allauth's names id_token and userinfo.
        present: the role until now.
    """
    sources = (claims.get("id_token"), claims.get("userinfo"))
    groups = {group for source in sources for group in _groups(source, provider.role_claim)}
    for role, names in provider.roles:  # operators first
        if not groups.isdisjoint(names):
            return role
    return "owner" if present in dict(provider.roles) else present


def _groups(source: Any, claim: str) -> list[str]:
    found = source.get(claim) if isinstance(source, dict) and claim in source else _at(source, claim.split("."))
    listed = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    return [each for each in listed[:MOST_GROUPS] if isinstance(each, str)]


def _at(found: Any, names: list[str]) -> Any:
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found
