"""Descriptions of the objects of the REST API, one line each, by the group under which the reference shows them."""

from typing import Final

GROUPS: Final[dict[str, dict[str, str]]] = {
    "Companies": {
        "CompanyList": "A page of companies, with filters, totals and the next page.",
        "CompanyDetail": "The answer to a request for one company.",
        "CompanyBundle": "One company with all its parts: team, proposals, token, cap table and funding rounds.",
        "Company": "The facts of a company, DAO or nonprofit.",
        "Position": "A person's title at a company.",
        "Proposal": "A governance proposal, with its votes and outcome.",
        "Distribution": "How a token is distributed: its pools, method and schedule.",
        "CapTablePage": "A page of the cap table of a company.",
        "CapTableEntry": "A holder in a cap table, with tokens and share.",
        "FundingRound": "A round in which a company raises or raised funds.",
        "Assessment": "The published score of a company by one framework.",
        "Address": "A postal address.",
        "Socials": "Email address, phone number and profiles.",
        "Logo": "The copy of a logo that this registry serves, with its size.",
        "VerifiedDomain": "The domain that an owner proved, and how.",
        "FormerName": "A name that a company had before.",
    },
    "People": {
        "PersonList": "A page of people, with totals and the next page.",
        "PersonDetail": "The answer to a request for one person.",
        "Person": "A person, with their positions.",
    },
    "Frameworks": {
        "FrameworkList": "All assessment frameworks: scores and programs.",
        "FrameworkOne": "The answer to a request for one framework.",
        "FrameworkDetail": "One framework, with its company and its best scores.",
        "Framework": "The facts of an assessment framework.",
        "FrameworkCompany": "The company that runs a framework.",
        "ScorePage": "A page of the companies that a framework scored.",
        "RankedScore": "A company's published score, with its rank.",
    },
    "Search": {
        "SearchResults": "The results of a search over companies, people and frameworks.",
        "SearchResult": "One result: its kind, name and address, and what matched.",
        "Closest": "A company or person with a similar name, where nothing matches.",
        "ClosestOfAll": "A similar name of any kind, where nothing matches.",
        "Facets": "How many items each value of a filter has.",
        "FacetValues": "The values of the filters, with their counts.",
        "Pagination": "The place of a page in its list, and the cursor of the next one.",
    },
    "Registry": {
        "StatsOne": "The answer to a request for the statistics.",
        "Stats": "The numbers of companies, people and frameworks, and the total treasury.",
        "ChangeList": "A page of the change feed.",
        "Change": "One item that was published, updated or unlisted.",
        "ExportList": "The files with the whole registry.",
        "Export": "A file with the whole registry, with its size and checksum.",
        "Error": "What an error says: its code, message and hint.",
    },
}
OTHERS: Final = "Others"
