"""The mappings of public exports: GLEIF, Companies House and Wikidata. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from muniment.registry.tables.catalogue import COMPANIES, key
from muniment.registry.tables.headings import match


class Preset(NamedTuple):
    """
    The mapping of a public format.

    Args:
        signs: headings that its exports have, all of them.
        fields: the field and the options of the column, by heading.
    """

    name: str
    kind: str
    signs: tuple[str, ...]
    fields: Mapping[str, Any]

    def options_of(self, heading: str) -> dict[str, Any]:
        """Return the options of the column with *heading*; other columns of Wikidata hold what their words mean."""
        options_by_heading = {key(name): options for name, options in self.fields.items()}
        options = options_by_heading.get(key(heading))
        if isinstance(options, str):
            return {"field": options}
        if options is not None:
            return dict(options)
        fields = match(heading, self.kind).fields if self.name == "Wikidata" else ()
        return {"field": fields[0] if fields else ""}


def _founded(order: str) -> dict[str, str]:
    return {"field": "extra:founded", "order": order}


_GLEIF_STATUS: Final = {"field": "status", "words": {"ACTIVE": "active", "INACTIVE": "inactive", "NULL": ""}}
_GLEIF_ADDRESS: Final = {
    "FirstAddressLine": "address.address_1",
    "AdditionalAddressLine.1": "address.address_2",
    "City": "address.city",
    "Region": "address.state",
    "Country": "address.country",
    "PostalCode": "address.zip",
}
PRESETS: Final = (
    Preset(
        "GLEIF",
        COMPANIES,
        ("LEI", "Entity.LegalName"),
        {
            "LEI": "extra:lei",
            "Entity.LegalName": "name",
            **{f"Entity.LegalAddress.{name}": member for name, member in _GLEIF_ADDRESS.items()},
            "Entity.EntityStatus": _GLEIF_STATUS,
            "Entity.EntityCreationDate": _founded("YMD"),
            "Entity.RegistrationAuthority.RegistrationAuthorityEntityID": "extra:registrationNumber",
            "Entity.LegalJurisdiction": "extra:jurisdiction",
            "Entity.LegalForm.EntityLegalFormCode": "extra:legalForm",
        },
    ),
    Preset(
        "GLEIF",
        COMPANIES,
        ("attributes.lei", "attributes.entity.legalName.name"),
        {
            "attributes.lei": "extra:lei",
            "attributes.entity.legalName.name": "name",
            "attributes.entity.legalAddress.addressLines": "address.address_1",
            "attributes.entity.legalAddress.city": "address.city",
            "attributes.entity.legalAddress.region": "address.state",
            "attributes.entity.legalAddress.country": "address.country",
            "attributes.entity.legalAddress.postalCode": "address.zip",
            "attributes.entity.status": _GLEIF_STATUS,
            "attributes.entity.creationDate": _founded("YMD"),
            "attributes.entity.registeredAs": "extra:registrationNumber",
            "attributes.entity.jurisdiction": "extra:jurisdiction",
        },
    ),
    Preset(
        "Companies House",
        COMPANIES,
        ("CompanyName", "CompanyNumber", "CompanyStatus"),
        {
            "CompanyName": "name",
            "CompanyNumber": "extra:registrationNumber",
            "RegAddress.AddressLine1": "address.address_1",
            "RegAddress.AddressLine2": "address.address_2",
            "RegAddress.PostTown": "address.city",
            "RegAddress.County": "address.state",
            "RegAddress.Country": "address.country",
            "RegAddress.PostCode": "address.zip",
            "CompanyCategory": "type",
            "CompanyStatus": {
                "field": "status",
                "words": {
                    "Active - Proposal to Strike off": "active",
                    "Voluntary Arrangement": "active",
                    "In Administration": "inactive",
                    "In Administration/Administrative Receiver": "inactive",
                    "Liquidation": "inactive",
                },
            },
            "IncorporationDate": _founded("DMY"),
            "SICCode.SicText_1": "industry",
            "URI": "",
        },
    ),
    Preset(
        "Wikidata",
        COMPANIES,
        ("item", "itemLabel"),
        {
            "item": "extra:wikidata",
            "itemLabel": "name",
            "itemDescription": "description",
            "inception": _founded("YMD"),
            "countryLabel": "address.country",
            "headquartersLabel": "address.city",
            "industryLabel": "industry",
            "website": "website",
            "officialWebsite": "website",
            "employees": "teamSize",
            "lei": "extra:lei",
            "ceoLabel": {"field": "people", "title": "CEO"},
            "founderLabel": {"field": "people", "title": "Founder"},
        },
    ),
)


def preset_of(headings: Sequence[str]) -> Preset | None:
    """Return the public format whose headings these are."""
    keys = {key(heading) for heading in headings}
    for preset in PRESETS:
        if keys.issuperset(map(key, preset.signs)):
            return preset
    return None
