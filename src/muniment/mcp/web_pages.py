"""
The pages on which people do what no tool does: new listings, logos, credits, large files, tokens and connected apps.

A call of a tool that does not exist is led to the page that its name means, or to the tools with a similar name.
"""

import difflib
import re
from collections.abc import Collection
from typing import Final, NamedTuple

from muniment.kernel.json import JSONObject

NEW_LISTING: Final = "/manage/companies/new"
LISTINGS: Final = "/manage"
PROFILE: Final = "/manage/profile"
CREDITS: Final = "/manage/credits"
DOCUMENTS: Final = "/manage/documents"
TOKENS: Final = "/manage/tokens"
ACCOUNT: Final = "/accounts/data/"


class Job(NamedTuple):
    """
    Something that is done on a page.

    Args:
        sentence: says so, and ends before the address.
        nouns: words of a tool's name, one of which means it.
        verbs: words, one of which is there too; empty for any.
    """

    path: str
    sentence: str
    nouns: frozenset[str]
    verbs: frozenset[str] = frozenset()


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LISTING: Final = _words("company companies listing listings organization dao nonprofit business")
_END: Final = _words("delete remove revoke disconnect unlink end cancel rotate regenerate create new list manage")
JOBS: Final = (
    Job(
        PROFILE,
        "The picture of a profile is changed in the web app:",
        _words("avatar portrait photo headshot"),
    ),
    Job(
        LISTINGS,
        "The logo of a listing is changed in the web app, on the listing's page under Logo:",
        _words("logo logos icon icons picture pictures image images banner"),
    ),
    Job(
        CREDITS,
        "Credits and billing are in the web app:",
        _words("credit credits billing bill payment payments pay invoice invoices purchase purchases topup checkout"),
    ),
    Job(
        TOKENS,
        "Tokens and connected apps are managed in the web app:",
        _words("token tokens app apps client clients connection connections grant grants access session sessions"),
        _END,
    ),
    Job(ACCOUNT, "An account is exported and deleted in the web app:", _words("account accounts")),
    Job(
        LISTINGS,
        "The owners of a listing are managed in the web app, on the listing's page:",
        _words("owner owners member members coowner"),
    ),
    Job(
        NEW_LISTING,
        "A new listing is created in the web app:",
        _LISTING,
        _words("create add new register make open publish insert start"),
    ),
    Job(
        LISTINGS,
        "A listing is unlisted, relisted or deleted in the web app, on the listing's page:",
        _LISTING,
        _words("delete remove unlist relist unpublish archive restore"),
    ),
    Job(
        DOCUMENTS,
        "Files of any size are uploaded in the web app:",
        _words("file files document documents attachment attachments"),
        _words("upload add attach import create put send"),
    ),
)
"""In the order in which they are tried: a company's logo is a logo first."""
PICTURES: Final = frozenset({"icon", "logo", "picture", "image", "avatar", "photo", "portrait"})
"""Names that clients give to a picture among the fields that a tool changes."""
_MAX_SHOWN: Final = 100
_PAGE: Final = re.compile(
    r"(?<![\w/:.>%-])/(?:manage|accounts|api/v1|companies/[^/\s]+/(?:claim|suggest|domain))(?![\w-])"
)
"""A page or a resource of the API by its path, as messages name it that pages show too."""
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def with_addresses(error: JSONObject, base_url: str) -> JSONObject:
    """Return an error whose message and hint name pages by full addresses: an agent has no page to start from."""
    shown: JSONObject = dict(error)
    for name in ("message", "hint"):
        if name in error:
            shown[name] = _PAGE.sub(lambda path: base_url + path[0], error[name])
    return shown


def unknown_tool(name: str, tools: Collection[str], base_url: str) -> str:
    """Return the message about a tool that does not exist: where its job is done, and which tools are similar."""
    shown = name[:_MAX_SHOWN]
    said = [f"Unknown tool: {shown}."]
    words = {word.lower().replace("isation", "ization") for word in _WORD.findall(shown)}
    job = _job_of(words)
    if job is not None:
        said.append(f"{job.sentence} {base_url}{job.path}.")
    near = difflib.get_close_matches(shown, tools, n=3, cutoff=0.6)
    if near:
        said.append(f"Similar tools: {', '.join(near)}.")
    elif job is None:
        said.append("Call tools/list for all tools.")
    return " ".join(said)


def _job_of(words: Collection[str]) -> Job | None:
    """Return the first job whose object the words of a tool's name contain, with one of its verbs, if it has any."""
    for job in JOBS:
        has_verb = not job.verbs or not job.verbs.isdisjoint(words)
        if has_verb and not job.nouns.isdisjoint(words):
            return job
    return None
