"""Companies and people in the schema.org vocabulary, which search engines read."""

from typing import Any
from urllib.parse import quote

from muniment.kernel.json import JSONObject
from muniment.kernel.wire import PICTURE_PATH
from muniment.web.presenters.company import places_of, safe_link


def profile_of_company(
    company: JSONObject, positions: list[JSONObject], links: list[JSONObject], base: str
) -> JSONObject:
    """
    Describe a company in the schema.org vocabulary.

    Args:
        links: what :func:`links_of` returns.
    """
    profile = {
        "@context": "https://schema.org",
        "@type": "Organization",
        "@id": f"{base}/companies/{quote(company['id'])}",
        "name": company["name"],
        "description": company.get("description"),
        "url": safe_link(company.get("website")),
        "sameAs": [link["address"] for link in links if link["address"].startswith("http")],
        "identifier": [
            {"@type": "PropertyValue", "propertyID": name, "value": value}
            for name, value in (("slug", company["id"]), ("token symbol", company.get("symbol")))
            if value
        ],
        "logo": _image(company.get("logo"), base),
        "address": next((_postal_address(place) for place in places_of(company)), None),
        "member": [
            {
                "@type": "OrganizationRole",
                "roleName": position.get("title", ""),
                "member": {
                    "@type": "Person",
                    "name": position["person"]["name"],
                    **({"url": f"{base}/people/{quote(slug)}"} if (slug := position["person"].get("slug")) else {}),
                },
            }
            for position in positions[:50]
            if position.get("person")
        ],
    }
    return {name: value for name, value in profile.items() if value}


def _image(logo: Any, base: str) -> JSONObject | None:
    """Describe the picture that this instance serves of a logo."""
    if not isinstance(logo, dict) or not PICTURE_PATH.fullmatch(str(logo.get("url"))):
        return None
    return {"@type": "ImageObject", "url": f"{base}{logo['url']}", "width": logo["width"], "height": logo["height"]}


def _postal_address(place: JSONObject) -> JSONObject:
    names = {
        "streetAddress": "address_1",
        "addressLocality": "city",
        "addressRegion": "state",
        "postalCode": "zip",
        "addressCountry": "country",
    }
    parts = {theirs: place[ours] for theirs, ours in names.items() if place.get(ours)}
    return {"@type": "PostalAddress", **parts}


def profile_of_person(person: JSONObject, base: str) -> JSONObject:
    """Describe a person in the schema.org vocabulary."""
    profile = {
        "@context": "https://schema.org",
        "@type": "Person",
        "@id": f"{base}/people/{quote(person['slug'])}",
        "name": person["name"],
        "description": person.get("bio"),
        "worksFor": [
            {
                "@type": "OrganizationRole",
                "roleName": position.get("title", ""),
                "worksFor": {
                    "@type": "Organization",
                    "name": position["company"]["name"],
                    "url": f"{base}/companies/{quote(position['company'].get('slug') or position['company']['id'])}",
                },
            }
            for position in person.get("positions") or []
            if position.get("company")
        ],
    }
    return {name: value for name, value in profile.items() if value}
