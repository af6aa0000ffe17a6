"""
Other names of the same values, for filters, searches and imports alike.

Only names that mean exactly the same belong here: a charity is a nonprofit, but not every nonprofit is a charity.
"""

from typing import Final

SAME: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "type": (
        ("non-profit", "nonprofit", "not-for-profit", "non-profit organization", "nonprofit organization"),
        ("DAO", "decentralized autonomous organization", "decentralised autonomous organization"),
        ("VC", "VCs", "venture capital", "venture capital firm", "venture fund", "VC fund", "VC firm"),
        ("cooperative", "co-operative", "co-op", "coop"),
        ("open source project", "OSS project"),
    ),
    "title": (
        ("CEO", "chief executive officer", "chief executive"),
        ("CFO", "chief financial officer"),
        ("COO", "chief operating officer"),
        ("CTO", "chief technology officer", "chief technical officer"),
        ("CIO", "chief information officer"),
        ("CISO", "chief information security officer"),
        ("CMO", "chief marketing officer"),
        ("VP", "vice president"),
        ("co-founder", "cofounder"),
        ("chairperson", "chair", "chairman", "chairwoman"),
    ),
    "state": (  # the name of ISO 3166-2 first
        ("Bayern", "Bavaria"),
        ("Hessen", "Hesse"),
        ("Mecklenburg-Vorpommern", "Mecklenburg-Western Pomerania"),
        ("Niedersachsen", "Lower Saxony"),
        ("Nordrhein-Westfalen", "North Rhine-Westphalia"),
        ("Rheinland-Pfalz", "Rhineland-Palatinate"),
        ("Sachsen", "Saxony"),
        ("Sachsen-Anhalt", "Saxony-Anhalt"),
        ("Thüringen", "Thuringia"),
        ("District of Columbia", "Washington DC", "Washington, D.C."),
    ),
}
"""Values by the filter that they belong to: each group is one value with all its names."""

COUNTRIES: Final[dict[str, str]] = {
    "AT": "oesterreich rakousko",
    "BA": "bosnia bosnien",
    "BO": "bolivia bolivien",
    "CD": "drcongo drc congokinshasa",
    "CG": "congobrazzaville",
    "CH": "schweiz suisse svizzera svizra swiss confoederatiohelvetica",
    "CI": "ivorycoast elfenbeinkuste cotedivoire",
    "CN": "prc prchina mainlandchina volksrepublikchina 中国 中國 中国大陆 中国大陸 中华人民共和国",
    "CV": "capeverde kapverden",
    "CZ": "czechrepublic tschechien tschechischerepublik ceskarepublika republiquetcheque republicacheca czechy",
    "DE": "brd bundesrepublikdeutschland federalrepublicofgermany rfa republiquefederaledallemagne 德国 德國",
    "ES": "espana reinodeespana",
    "FR": "republiquefrancaise 法国 法國",
    "GB": "uk england scotland wales schottland grossbritannien greatbritain britain northernireland england&wales"
    " unitedkingdomofgreatbritainandnorthernireland angleterre inglaterra inghilterra engeland anglia"
    " grandebretagne granbretana granbretagna wielkabrytania storbritannien storbritannia velkabritanie"
    " grootbrittannie ru reinounido royaumeuni regnounito イギリス 英国 英國 영국 wales/england",
    "GR": "greece hellas",
    "HK": "hongkong hongkongsar 香港",
    "IE": "eire republicofireland irland",
    "IR": "iran",
    "IT": "italia",
    "JP": "日本国",
    "KR": "southkorea korearepublicof republicofkorea sudkorea coreedusud coreadelsur coreadelsud coreiadosul"
    " sydkorea zuidkorea 韓国 韩国 南韓 한국 대한민국 남한",
    "KP": "northkorea nordkorea",
    "LA": "laos",
    "MD": "moldova moldawien",
    "MK": "macedonia northmacedonia mazedonien",
    "NL": "holland thenetherlands holanda hollande olanda nederland paysbas paisesbajos paesibassi nizozemi holandia",
    "PS": "palestine palastina",
    "RU": "russia russland russie rusia russiche rosja rusland ryssland rusko",
    "SY": "syria syrien",
    "SZ": "swaziland",
    "TR": "turkey turkei turquie turquia turchia turcja turkije tyrkiet turkiet turecko",
    "TW": "taiwan taiwanroc 台湾 台灣 대만",
    "TZ": "tanzania tansania",
    "AE": "uae vae eau emiratosarabes",
    "US": "usa u.s.a. u.s. us unitedstatesofamerica vereinigtestaatenvonamerika vereinigtestaaten etatsunis"
    " etatsunisdamerique eeuu estadosunidos statiuniti statiunitidamerica eua verenigdestaten stanyzjednoczone"
    " forentastaterna spojenestaty アメリカ 米国 美国 美國 미국 america",
    "VA": "vatican vatikan vatikanstadt holysee",
    "VE": "venezuela",
    "VN": "vietnam",
    "XK": "kosovo",
}
"""Usual names of countries that the standard does not have: in lower case, without spaces and accents."""
