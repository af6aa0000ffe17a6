"""
Texts to begin the legal pages with. What has to be filled in is in double square brackets.

They are no legal advice, and say so where they are offered; what a country requires is the operator's to add.
"""

import re
from typing import Final

from django.utils.translation import gettext

_PLACEHOLDER: Final = re.compile(r"\[\[([^\[\]\n]{1,80})\]\]")
PAGES: Final = ("imprint", "privacy", "terms")


def starting_text(page: str) -> str:
    """Return the Markdown to begin a page with."""
    return {"imprint": _imprint, "privacy": _privacy, "terms": _terms}[page]()


def open_placeholders(text: str) -> list[str]:
    """Return what is not filled in yet."""
    return list(dict.fromkeys(_PLACEHOLDER.findall(text)))


def _imprint() -> str:
    text = gettext(
        """[[Name of the operator]]
[[Street and number]]
[[Postal code and city]]
[[Country]]

Represented by: [[Name and position]]

Email: [[Email address]]
Telephone: [[Telephone number]]

Register: [[Register and number]]
VAT number: [[VAT number]]

Responsible for the content: [[Name and address]]
"""
    )
    return re.sub(r"(?<=\S)\n(?=\S)", "  \n", text)


def _privacy() -> str:
    return gettext(
        """## Who is responsible

[[Name of the operator]], [[Address]]. Questions about your data: [[Email address]].

## What is public

This registry publishes listings of organizations and of the people in them: names, positions, and what owners or \
public sources state about them. Our legal basis is [[Legal basis, such as legitimate interest]].

## What an account stores

Your email address, your name if you enter it, your password as a hash, your sessions with address and browser, and a \
log of what happened to your account. We use them to sign you in and to keep the record trustworthy.

## Cookies

One cookie keeps you signed in, and one protects forms. There is no advertising and no tracking, and pages load \
nothing from other sites.

## How long

Accounts are kept until you delete them. Backups are kept for [[Period, such as one month]].

## Your rights

You can see, download and delete the data of your account on its pages. To have a public profile corrected or \
removed, claim it, or write to [[Email address]]. You can complain to [[Supervisory authority]].
"""
    )


def _terms() -> str:
    return gettext(
        """## What this is

[[Name of the operator]] runs this registry. Reading it is free, as pages and through the API.

## Data

The data are licensed as the footer says. We check them with care, and cannot promise that they are complete or \
correct.

## Accounts and listings

Owners enter only what is true and what they may publish. Reviewers check listings before they are public. We can \
unlist a listing and close an account that breaks these terms.

## Fair use

Programs respect the limits that the API states.

## Law

The law of [[Country]] applies. The place of jurisdiction is [[City]].
"""
    )
