"""
Recognize columns by their headings, with synonyms in English and German, and the presets of public formats.

A synonym only proposes; :mod:`muniment.registry.tables.mapping` checks that the values of the column fit. Presets are
those of GLEIF, Companies House and Wikidata exports.
"""

import re
import unicodedata
from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from muniment.registry.declared.columns import fields_of, words_for

COMPANIES: Final = "companies"
PEOPLE: Final = "people"
SKIP: Final = "skip"
EXTRA: Final = "extra:"
"""Before the name of an additional member."""
MAX_HEADER_ROW: Final = 30

_SOCIALS: Final = {
    "socials.email": "email emailaddress mail mailaddress emailadresse mailadresse kontaktemail contactemail"
    " officeemail infoemail epost courriel correo",
    "socials.phone_number": "phone phonenumber telephone telephonenumber tel telefon telefonnummer telnr fon mobile"
    " mobil handy rufnummer officephone telefono",
    "socials.facebook": "facebook facebookurl facebookpage fb",
    "socials.instagram": "instagram instagramurl insta ig",
    "socials.tiktok": "tiktok",
    "socials.linkedin": "linkedin linkedinurl linkedinprofile linkedinprofil linkedinpage",
    "socials.youtube": "youtube youtubechannel youtubekanal",
    "socials.twitter": "twitter x xtwitter twitterhandle twitterurl twitterx",
}
_ADDRESS: Final = {
    "address": "address fulladdress postaladdress anschrift adresse postanschrift postadresse headquarters hauptsitz"
    " location standort registeredaddress registeredoffice domicile geschaftsadresse direccion indirizzo adres hq"
    " hqaddress",
    "address.address_1": "street streetaddress addressline1 address1 line1 strasse strassehausnummer strassehausnr"
    " strasseundhausnummer strassenr strassenummer strasseundnummer strassenadresse rue calle via straat ulica",
    "address.address_2": "addressline2 address2 line2 suite adresszusatz zusatz building unit",
    "address.city": "city town ort stadt wohnort ortschaft posttown municipality locality gemeinde ville ciudad citta"
    " plaats miasto sitz",
    "address.state": "region province county bundesland kanton stateprovince stateregion provincia"
    " addressstate wojewodztwo",
    "address.zip": "zip zipcode postalcode postcode plz postleitzahl cp codepostal codigopostal cap kodpocztowy",
    "address.country": "country land staat countrycode countryname landercode landescode nation pays pais paese"
    " countryregion kraj domicilecountry",
}
_COMPANY: Final = {
    "id": "slug companyslug muniumentid registryid",
    "name": "name companyname company organisation organization organisationname organizationname firma firmenname"
    " unternehmen unternehmensname mitglied mitgliedsname verein vereinsname legalname legalentityname entityname"
    " institution member membername business businessname startup startupname project projectname projekt projektname"
    " title titel bezeichnung institutionname museum betrieb firmierung nom nombre denominazione naam nazwa label"
    " itemlabel accountname unternehmenfirma namedesunternehmens namederfirma namederorganisation nameofcompany"
    " nomdelassociation nomdelentreprise nomdelorganisation raisonsociale denomination nazwaorganizacji nazwafirmy"
    " nombredelaempresa razonsocial ragionesociale nomedellasocieta naamorganisatie organisatie bedrijfsnaam"
    " nameoforganization nameoforganisation organisationsname einrichtung",
    "symbol": "symbol tokensymbol token ticker tickersymbol kurzel kursel",
    "teamSize": "teamsize employees employeecount numberofemployees headcount staff staffcount teammembers fte"
    " mitarbeiter mitarbeiterzahl anzahlmitarbeiter mitarbeiteranzahl beschaftigte beschaftigtenzahl mitarbeitende"
    " anzahlmitarbeitende teamgrosse personal noofemployees ofemployees"
    " nombredesalaries salaries effectif effectifs liczbapracownikow empleados numerodeempleados dipendenti"
    " aantalmedewerkers medewerkers",
    "treasury": "treasury treasuryvalue assets totalassets vermogen kapital stammkapital capital reserves rucklagen"
    " bilanzsumme balance vereinsvermogen gesamtvermogen",
    "status": "status companystatus state entitystatus mitgliedsstatus membershipstatus zustand stand aktivitat"
    " active aktiv lifecyclestatus estado etat stato statut aktiver",
    "type": "type companytype organisationtype organizationtype orgtype typ art rechtsform legalform companycategory"
    " gesellschaftsform entitytype formejuridique organisationsform organisationstyp typeoforganisation"
    " typeoforganization typeofcompany formaprawna formajuridica formagiuridica rechtsvorm",
    "industry": "industry sector branche wirtschaftszweig industriezweig industrysector sektor branch secteur settore"
    " businesssector industrie branza sectordactivite secteurdactivite settoredattivita bedrijfstak",
    "orgKind": "subtype kind orgkind kategorie category unterart organisationsart",
    "themes": "themes theme tags tag topics topic themen thema schlagworte schlagworter stichworte keywords"
    " focusareas schwerpunkte fokus interests labels etiquetas themenfelder themenfeld themenbereiche tematy temas"
    " temi",
    "description": "description summary shortdescription about beschreibung kurzbeschreibung tagline zusammenfassung"
    " kurzprofil pitch oneliner itemdescription info descripcion abstract aboutus uberuns opis descrizione omschrijving"
    " shorttext kurztext",
    "body": "body fulldescription longdescription details ausfuhrlichebeschreibung langbeschreibung profile profil",
    "website": "website url web homepage webseite internetseite internet webadresse site weburl websiteurl domain"
    " officialwebsite link internetadresse companywebsite siteweb paginaweb sitoweb www stronawww stronainternetowa"
    " sitioweb siteinternet internetauftritt",
    "dao_website": "daowebsite daourl governancesite daoseite",
    "listedAt": "listedat listed listingdate dateadded added addedon membersince mitgliedseit beitritt beitrittsdatum"
    " joined joinedon datejoined eintritt eintrittsdatum aufnahme aufnahmedatum joiningdate joindate aufgenommen"
    " aufgenommenam membershipstart beigetreten dabeiseit beitrittam eintrittam mitgliedab dateadhesion datedadhesion"
    " adhesion dataprzystapienia fechadealta datadiadesione lidsinds",
    "icon": "icon logo logourl",
    "extra:founded": "founded foundingdate foundationdate yearfounded foundingyear gegrundet grundung grundungsdatum"
    " grundungsjahr established incorporationdate incorporated inception dateofincorporation founddate foundedin"
    " startdate foundedyear jahrdergrundung foundedon grundungsdatumjahr rokzałozenia datadefondation datedecreation"
    " anneedecreation anodefundacion annodifondazione opgericht",
    "extra:lei": "lei leicode legalentityidentifier",
    "extra:registrationNumber": "companynumber registrationnumber handelsregisternummer hrb registernummer hrbnummer"
    " registrationno companyno handelsregister vereinsregisternummer registeredas",
    "people": "people persons contactperson contact ansprechpartner ansprechpartnerin kontaktperson kontakt team"
    " teammember teammitglieder representatives vertreter keypeople personen leadership managementteam primarycontact"
    " maincontact hauptkontakt personaldecontacto personadecontacto personnecontact osobakontaktowa contactpersoon",
}
TITLES: Final = {
    "CEO": "ceo chiefexecutive chiefexecutiveofficer",
    "Geschäftsführung": "geschaftsfuhrer geschaftsfuhrung geschaftsfuhrerin geschaftsfuhrerinnen geschaftsleitung",
    "Founder": "founder founders cofounder cofounders foundernames",
    "Gründer": "grunder grunderin grunderinnen grunderteam",
    "Board": "board boardmembers boardofdirectors zarząd",
    "Vorstand": "vorstand vorstande vorstandsmitglieder",
    "Director": "director directors managingdirector managingdirectors",
    "Chair": "chair chairperson chairman chairwoman przewodniczący voorzitter",
    "Vorsitz": "vorsitz vorsitzende vorsitzender ersterVorsitzender",
    "President": "president presidente presidency",
    "Präsidium": "prasident prasidentin prasidium",
    "Treasurer": "treasurer",
    "Kassenwart": "kassenwart kassierer schatzmeister schatzmeisterin",
    "CTO": "cto",
    "CFO": "cfo",
    "Owner": "owner owners inhaber inhaberin",
}
"""The positions that a heading over names of people means."""
_PERSON: Final = {
    "slug": "slug personslug",
    "name": "name fullname person personname vollername vollstandigername nameperson mitglied member contactname"
    " ansprechpartner namevorname vornamename vorundnachname itemlabel displayname participant teilnehmer nom nombre",
    "name.first": "firstname givenname vorname forename first prenom rufname",
    "name.last": "lastname surname familyname nachname familienname last zuname",
    "bio": "bio biography about description profile beschreibung profil uber kurzbiografie vita lebenslauf"
    " itemdescription kurzvita biografie",
    "position.title": "title role position jobtitle job function funktion rolle titel amt rol cargo aufgabe",
    "position.company": "company companyname organisation organization organisationname organizationname firma"
    " firmenname unternehmen verein employer arbeitgeber institution affiliation startup project projekt museum betrieb"
    " einrichtung club verband",
}
_PERSON_SURE: Final = ("name.first", "name.last", "bio", "position.title", "position.company")
_PERSON_TABLES: Final = re.compile(
    r"people|person|vorst[aä]nd|board|team|contact|kontakt|staff|ansprechpartner|mitarbeit|founders|gr[uü]nder",
    re.IGNORECASE,
)


def key(text: str) -> str:
    """Return a heading without spaces, signs and accents; words run together are the same heading."""
    if text.strip() == "%":
        return "percent"
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(each for each in plain if each.isalnum())


def _words(fields: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for field, words in fields.items():
        own = key(field.rpartition(".")[2].removeprefix(EXTRA))
        for word in (own, *words.split()):
            found.setdefault(key(word), field)
    return found


_KINDS: Final = {
    COMPANIES: _words({**_COMPANY, **_SOCIALS, **_ADDRESS})
    | {key(word): f"people:{title}" for title, words in TITLES.items() for word in words.split()},
    PEOPLE: _words(_PERSON),
}
_KINDS[COMPANIES]["state"] = "status"
FIELDS: Final = {
    COMPANIES: (*_COMPANY, *_SOCIALS, *_ADDRESS, "createdAt"),
    PEOPLE: tuple(_PERSON),
}
"""The fields that a column can hold, by kind."""


def field_of(heading: str, kind: str) -> str:
    """Return the field that a heading means in a table of *kind*; empty if none."""
    words = ChainMap(words_for(kind, key), _KINDS[kind])  # type: ignore[arg-type]  # only read
    plain = re.sub(r"[(\[].*?[)\]]", " ", heading)  # "Treasury (EUR)", "Name [required]"
    tail = re.split(r"[./:>|\n]|(?<=[a-z])(?=[A-Z])", heading)[-1]
    whole = heading.replace("\n", " ").replace("_", " ")
    last = heading.rpartition(" / ")[2]  # of a heading below a group
    for text in (whole, last, plain, plain.split("/")[0], plain.rpartition(" ")[0] if plain.endswith("*") else ""):
        if found := words.get(key(text)):
            return found
    for text in (heading.rpartition(".")[2], tail) if re.search(r"[.>|/\n]", heading) else ():
        if found := words.get(key(text)):
            return found
    return ""


def fields_in(kind: str) -> tuple[str, ...]:
    """Return the fields that a column of a table of *kind* can hold, the declared ones last."""
    return (*FIELDS.get(kind, ()), *fields_of(kind))


def header_row(rows: Sequence[Sequence[str]]) -> int:
    """Return the index of the row with the headings: the one with most known headings, else the first full one."""
    best, most = -1, 0
    known = [_known(row) for row in rows[:MAX_HEADER_ROW]]
    for at, row in enumerate(rows[:MAX_HEADER_ROW]):
        if known[at] > most and 3 * known[at] >= len({*row} - {""}):
            best, most = at, known[at]
    if best >= 0:
        is_of_groups = any(_groups(rows[best])) and known[best + 1 : best + 2] > [1]
        return best + 1 if is_of_groups else best
    widths = [sum(map(bool, row)) for row in rows[:MAX_HEADER_ROW]]
    return next((at for at, width in enumerate(widths) if width >= max(widths)), 0)


def _known(row: Sequence[str]) -> int:
    """Return the number of fields that the headings in *row* mean."""
    return max(len({field_of(cell, kind) for cell in row if cell} - {""}) for kind in _KINDS)


def _groups(row: Sequence[str]) -> set[str]:
    """Return the headings of several columns, as a merged cell makes them."""
    return {cell for at, cell in enumerate(row) if cell and cell in row[at + 1 : at + 2]}


def headings_of(rows: Sequence[Sequence[str]], at: int) -> list[str]:
    """Return the headings in row *at*, each once; a row of groups over them, which a merged cell makes, is joined."""
    row = list(rows[at])
    above = rows[at - 1] if at else []
    groups = _groups(above)
    if groups and len({cell for cell in above if cell}) > 1:
        row = [
            f"{above[n]} / {cell}" if above[n] in groups and cell and above[n] != cell else cell or above[n]
            for n, cell in enumerate(row)
        ]
    seen: dict[str, int] = {}
    found = []
    for cell in row:
        seen[cell] = seen.get(cell, 0) + 1
        found.append(cell if seen[cell] == 1 or not cell else f"{cell} ({seen[cell]})")
    return found


def kind_of_table(headings: Sequence[str], name: str) -> str:
    """Return the kind of rows that a table has, by its headings and its name."""
    as_people = {field_of(each, PEOPLE) for each in headings} - {""}
    as_companies = {field_of(each, COMPANIES) for each in headings} - {""}
    if {"name.first", "name.last"} <= as_people and "name" not in as_companies:
        return PEOPLE
    sure = len(as_people & {*_PERSON_SURE})
    if "name" in as_people and sure and (_PERSON_TABLES.search(name) or sure >= 2):
        rest = as_companies - {"name", "body", "description", "id"}
        if _PERSON_TABLES.search(name) or len(rest) <= sure:
            return PEOPLE
    if {"name.first", "name.last"} <= as_people and len(as_companies) <= len(as_people):
        return PEOPLE
    return COMPANIES


class Preset(NamedTuple):
    """
    The mapping of a public format.

    Args:
        signs: headings that its exports have, all of them.
        fields: by heading, the field and the options of the column.
    """

    name: str
    kind: str
    signs: tuple[str, ...]
    fields: Mapping[str, Any]

    def options_of(self, heading: str) -> dict[str, Any]:
        """Return the options of the column with *heading*; those of other columns come from their words."""
        given = {key(name): value for name, value in self.fields.items()}.get(key(heading))
        if given is None:
            return {"field": field_of(heading, self.kind) if self.name == "Wikidata" else ""}
        return {"field": given} if isinstance(given, str) else dict(given)


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
    given = {key(each) for each in headings}
    return next((each for each in PRESETS if given >= {key(sign) for sign in each.signs}), None)
