"""
Odd tables, each with the mapping that it needs and the values that it gives.

Every file here is one that a person could have: each was read right once, and must stay so.
"""

import json
from datetime import date
from typing import Any, NamedTuple

import pytest

from make.spreadsheets import workbook, zipped
from muniment.registry.tables.formats import read_sheets
from muniment.registry.tables.mapping import FileMapping, read_mapping, write_mapping
from muniment.registry.tables.proposing import propose
from muniment.registry.tables.records import KnownRows, Records, records_of

pytestmark = pytest.mark.django_db


class Sample(NamedTuple):
    name: str
    content: bytes
    fields: dict[str, str]
    first: dict[str, Any]
    """The first company, without its slug."""
    people: list[str]
    left_out: set[str]
    """Columns with losses."""


GERMAN = """Mitgliederliste des Beispielverbands;;;;;;;;;;;
Stand 01.02.2024;;;;;;;;;;;
;;;;;;;;;;;
Firma;Straße;PLZ;Ort;Land;Webseite;E-Mail;Mitarbeiter;Stammkapital (EUR);Mitglied seit;Status;Vorstand;Notiz
Weiher & Söhne GmbH;Uferweg 3;50667;Köln;Deutschland;www.weiher.example;info@weiher.example;1.200;1.250.000,50;\
03.09.1998;aktiv;Anna Weiher (Vorsitz), Bert Strom;säumig
Flußbau e.V.;Am Kai 1;8010;Graz;Österreich;https://flussbau.example;k.A.;10-49;;31.12.2004;ruhend;Clara Damm;
Summe;;;;;;;;1.250.000,50;;;;
"""
AMERICAN = """\ufeffCompany Name,Website URL,Employees,Treasury (USD),Date Added,Status,Founders,Tags,Country
"Alder & Co, Inc.",https://alder.example,"1,250",$1.2M,12/31/2023,Active,Ida Alder; Joe Birch,climate; energy,USA
Birch LLC,birch.example,12,"$950,000.00",01/02/2024,Closed,"Kim Cedar",climate,United Kingdom
Cedar Fund,n/a,,€5k,02/13/2024,Paused,,,Narnia
"""
UTF16 = "Name\tDescription\tSector\tLinkedIn\nDamm Kollektiv\tBaut Dämme.\tWater\thttps://linkedin.example/damm\n"
POLISH = """Nazwa;Ulica;Miasto;Kraj;Telefon
Łódki Źródło;Wąska 7;Łódź;Polska;+48 42 000 00 00
Żagle;Świętego 1;Gdańsk;Polska;
"""
NESTED = {
    "meta": {"count": 2, "pages": [1, 2, 3]},
    "result": {
        "items": [
            {
                "name": "Elm Museum",
                "contact": {"email": "office@elm.example", "web": {"url": "https://elm.example"}},
                "address": {"street": "Elm Row 1", "city": "Leeds", "country": "GB"},
                "team": [{"name": "Lia Elm", "role": "Director"}, {"name": "Max Fir", "role": "Curator"}],
                "tags": ["art", "history"],
            },
            {"name": "Fir House", "contact": {"email": None}, "address": {"city": "York", "country": "United Kingdom"}},
        ]
    },
}
LINES = [
    {"organisation": "Gorse Cooperative", "memberSince": "2019-05-04T00:00:00Z", "active": True, "staff": 7},
    {"organisation": "Heath Cooperative", "memberSince": "2020-06-30", "active": False, "staff": 12},
]
GLEIF = """LEI,Entity.LegalName,Entity.LegalAddress.FirstAddressLine,Entity.LegalAddress.City,\
Entity.LegalAddress.Country,Entity.LegalAddress.PostalCode,Entity.EntityStatus,Entity.EntityCreationDate,\
Registration.RegistrationStatus
5299000000000000AB12,Ivy Holding AG,Ivy Strasse 1,Zug,CH,6300,ACTIVE,1999-03-01T00:00:00Z,ISSUED
5299000000000000AB13,Juniper BV,Kade 2,Utrecht,NL,3511 AA,NULL,,LAPSED
"""
COMPANIES_HOUSE = """CompanyName, CompanyNumber,RegAddress.AddressLine1,RegAddress.PostTown,RegAddress.Country,\
RegAddress.PostCode,CompanyCategory,CompanyStatus,IncorporationDate,SICCode.SicText_1,URI
"KELP & SONS LIMITED","00000001","1 KELP LANE","LEEDS","ENGLAND","LS1 1AA","Private Limited Company",\
"Active - Proposal to Strike off","04/03/2001","01110 - Growing of kelp","http://business.data.example/00000001"
"""
WIKIDATA = {
    "head": {"vars": ["item", "itemLabel"]},
    "results": {
        "bindings": [
            {
                "item": {"type": "uri", "value": "http://www.wikidata.example/entity/Q1"},
                "itemLabel": {"type": "literal", "xml:lang": "en", "value": "Larch Foundation"},
                "inception": {"type": "literal", "value": "1987-05-01T00:00:00Z"},
                "countryLabel": {"type": "literal", "value": "Germany"},
                "website": {"type": "uri", "value": "https://larch.example/"},
            },
            {
                "item": {"type": "uri", "value": "http://www.wikidata.example/entity/Q2"},
                "itemLabel": {"type": "literal", "value": "Moss Trust"},
            },
        ]
    },
}
MERGED = workbook(
    {
        "Mitglieder": [
            ["Organisation", "Adresse", "", "Kontakt", "", "Aufnahme"],
            ["", "Stadt", "Land", "E-Mail", "Ansprechpartner", ""],
            ["Nessel Verein", "Basel", "Schweiz", "a@nessel.example", "Olm, Nora", date(2001, 2, 3)],
            ["Olm Stiftung", "Wien", "AUT", "b@olm.example", "Petra Quell", date(1999, 12, 31)],
        ],
        "Leer": [],
    },
    merged=("B1:C1", "D1:E1"),
)
PEOPLE = workbook(
    {
        "Firmen": [["Unternehmen", "Webseite"], ["Quarz GmbH", "https://quarz.example"]],
        "Vorstände": [
            ["Vorname", "Nachname", "Firma", "Funktion", "Geburtstag"],
            ["Rita", "Schiefer", "Quarz GmbH", "Vorsitz", date(1970, 1, 1)],
            ["Ulf", "Ton", "Unbekannte AG", "Beirat", ""],
        ],
    }
)

SAMPLES = [
    Sample(
        "mitglieder.csv",
        GERMAN.encode("cp1252"),
        {
            "Firma": "name",
            "Straße": "address.address_1",
            "PLZ": "address.zip",
            "Ort": "address.city",
            "Land": "address.country",
            "Webseite": "website",
            "E-Mail": "socials.email",
            "Mitarbeiter": "teamSize",
            "Stammkapital (EUR)": "treasury",
            "Mitglied seit": "listedAt",
            "Status": "status",
            "Vorstand": "people",
            "Notiz": "",
        },
        {
            "name": "Weiher & Söhne GmbH",
            "address": [{"address_1": "Uferweg 3", "zip": "50667", "city": "Köln", "country": "DE"}],
            "website": "https://www.weiher.example",
            "socials": {"email": "info@weiher.example"},
            "teamSize": 1200,
            "treasuryAmount": {"amount": "1250000.50", "currency": "EUR"},
            "listedAt": "1998-09-03",
            "status": "active",
        },
        ["Anna Weiher (Vorsitz)", "Bert Strom (Vorstand)"],
        {"Notiz", "Mitarbeiter", "E-Mail", ""},
    ),
    Sample(
        "export.csv",
        AMERICAN.encode(),
        {
            "Company Name": "name",
            "Website URL": "website",
            "Employees": "teamSize",
            "Treasury (USD)": "treasury",
            "Date Added": "listedAt",
            "Status": "status",
            "Founders": "people",
            "Tags": "themes",
            "Country": "address.country",
        },
        {
            "name": "Alder & Co, Inc.",
            "website": "https://alder.example",
            "teamSize": 1250,
            "listedAt": "2023-12-31",
            "status": "active",
            "themes": ["climate", "energy"],
            "address": [{"country": "US"}],
        },
        ["Ida Alder (Founder)", "Joe Birch (Founder)"],
        {
            "Employees",
            "Treasury (USD)",
            "Status",
            "Country",
            "Website URL",
        },  # pages show the number of founders as the team size
    ),
    Sample(
        "tabs.txt",
        UTF16.encode("utf-16"),
        {"Name": "name", "Description": "description", "Sector": "industry", "LinkedIn": "socials.linkedin"},
        {
            "name": "Damm Kollektiv",
            "description": "Baut Dämme.",
            "industry": "Water",
            "socials": {"linkedin": "https://linkedin.example/damm"},
        },
        [],
        set(),
    ),
    Sample(
        "lista.csv",
        POLISH.encode("cp1250"),
        {
            "Nazwa": "name",
            "Ulica": "address.address_1",
            "Miasto": "address.city",
            "Kraj": "address.country",
            "Telefon": "socials.phone_number",
        },
        {
            "name": "Łódki Źródło",
            "address": [{"address_1": "Wąska 7", "city": "Łódź", "country": "PL"}],
            "socials": {"phone_number": "+48 42 000 00 00"},
        },
        [],
        set(),
    ),
    Sample(
        "nested.json",
        json.dumps(NESTED).encode(),
        {
            "name": "name",
            "contact.email": "socials.email",
            "contact.web.url": "website",
            "address.street": "address.address_1",
            "address.city": "address.city",
            "address.country": "address.country",
            "team": "people",
            "tags": "themes",
        },
        {
            "name": "Elm Museum",
            "socials": {"email": "office@elm.example"},
            "website": "https://elm.example",
            "address": [{"address_1": "Elm Row 1", "city": "Leeds", "country": "GB"}],
            "themes": ["art", "history"],
        },
        ["Lia Elm (Director)", "Max Fir (Curator)"],
        {""},  # "meta" is outside of the list of rows
    ),
    Sample(
        "lines.jsonl",
        b"\n".join(json.dumps(each).encode() for each in LINES),
        {"organisation": "name", "memberSince": "listedAt", "active": "status", "staff": "teamSize"},
        {"name": "Gorse Cooperative", "listedAt": "2019-05-04", "status": "active", "teamSize": 7},
        [],
        set(),
    ),
    Sample(
        "lei-records.csv",
        GLEIF.encode(),
        {
            "LEI": "extra:lei",
            "Entity.LegalName": "name",
            "Entity.LegalAddress.FirstAddressLine": "address.address_1",
            "Entity.LegalAddress.City": "address.city",
            "Entity.LegalAddress.Country": "address.country",
            "Entity.LegalAddress.PostalCode": "address.zip",
            "Entity.EntityStatus": "status",
            "Entity.EntityCreationDate": "extra:founded",
            "Registration.RegistrationStatus": "",
        },
        {
            "name": "Ivy Holding AG",
            "lei": "5299000000000000AB12",
            "founded": "1999-03-01",
            "status": "active",
            "address": [{"address_1": "Ivy Strasse 1", "city": "Zug", "country": "CH", "zip": "6300"}],
        },
        [],
        {"Registration.RegistrationStatus"},
    ),
    Sample(
        "BasicCompanyData.zip",
        zipped({"data/BasicCompanyData.csv": COMPANIES_HOUSE, "__MACOSX/._x.csv": "x"}),
        {
            "CompanyName": "name",
            "CompanyNumber": "extra:registrationNumber",
            "RegAddress.AddressLine1": "address.address_1",
            "RegAddress.PostTown": "address.city",
            "RegAddress.Country": "address.country",
            "RegAddress.PostCode": "address.zip",
            "CompanyCategory": "type",
            "CompanyStatus": "status",
            "IncorporationDate": "extra:founded",
            "SICCode.SicText_1": "industry",
            "URI": "",
        },
        {
            "name": "KELP & SONS LIMITED",
            "registrationNumber": "00000001",
            "address": [{"address_1": "1 KELP LANE", "city": "LEEDS", "country": "GB", "zip": "LS1 1AA"}],
            "type": "Private Limited Company",
            "status": "active",
            "founded": "2001-03-04",
            "industry": "01110 - Growing of kelp",
        },
        [],
        {"URI"},
    ),
    Sample(
        "query.json",
        json.dumps(WIKIDATA).encode(),
        {
            "item": "extra:wikidata",
            "itemLabel": "name",
            "inception": "extra:founded",
            "countryLabel": "address.country",
            "website": "website",
        },
        {
            "name": "Larch Foundation",
            "wikidata": "http://www.wikidata.example/entity/Q1",
            "founded": "1987-05-01",
            "address": [{"country": "DE"}],
            "website": "https://larch.example/",
        },
        [],
        set(),
    ),
    Sample(
        "merged.xlsx",
        MERGED,
        {
            "Organisation": "name",
            "Adresse / Stadt": "address.city",
            "Adresse / Land": "address.country",
            "Kontakt / E-Mail": "socials.email",
            "Kontakt / Ansprechpartner": "people",
            "Aufnahme": "listedAt",
        },
        {
            "name": "Nessel Verein",
            "address": [{"city": "Basel", "country": "CH"}],
            "socials": {"email": "a@nessel.example"},
            "listedAt": "2001-02-03",
        },
        ["Nora Olm"],
        set(),
    ),
    Sample(
        "verband.xlsx",
        PEOPLE,
        {
            "Unternehmen": "name",
            "Webseite": "website",
            "Vorname": "name.first",
            "Nachname": "name.last",
            "Firma": "position.company",
            "Funktion": "position.title",
            "Geburtstag": "",
        },
        {"name": "Quarz GmbH", "website": "https://quarz.example"},
        ["Rita Schiefer (Vorsitz)"],
        {"Geburtstag", "Firma"},
    ),
]


def proposed(sample: Sample) -> FileMapping:
    return propose(read_sheets(sample.content, sample.name), sample.name)


def converted(sample: Sample, mapping: FileMapping, currency: str = "EUR") -> Records:
    return records_of(read_sheets(sample.content, sample.name), mapping, KnownRows.read(), currency)


def said(position: dict[str, Any]) -> str:
    title = position.get("title")
    return f"{position['person']['name']} ({title})" if title else position["person"]["name"]


@pytest.mark.parametrize("sample", SAMPLES, ids=[each.name for each in SAMPLES])
def test_columns_are_recognized_and_values_are_right(sample):
    mapping = proposed(sample)
    fields = {column.heading: column.field for table in mapping.table for column in table.column if column.heading}
    assert fields == sample.fields
    found = converted(sample, mapping)
    _, line = found.companies[0]
    line["company"].pop("id")
    assert line["company"] == sample.first
    assert [said(each) for each in line.get("positions", [])] == sample.people
    assert {loss.column for loss in found.losses} == sample.left_out


@pytest.mark.parametrize("sample", SAMPLES, ids=[each.name for each in SAMPLES])
def test_a_mapping_written_and_read_gives_the_same_rows(sample):
    mapping = proposed(sample)
    again = read_mapping(write_mapping(mapping, read_sheets(sample.content, sample.name)))
    assert converted(sample, again) == converted(sample, mapping)
