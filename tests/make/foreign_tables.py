# ruff: noqa: E501 - the lines of tables are as long as those of files
"""Tables of fictional organizations in several languages and shapes, with the mapping and the values they have."""

import json
from datetime import date
from typing import Any, NamedTuple

from make.spreadsheets import workbook, zipped


class ForeignTable(NamedTuple):
    """
    A file.

    Args:
        fields: by heading, the field that it is mapped to at once.
        first: the first company, without its slug.
        people: of the first company, with their positions.
        guesses: headings whose field is a guess.
        currency: of the registry.
    """

    name: str
    content: bytes
    fields: dict[str, str]
    first: dict[str, Any]
    people: tuple[str, ...] = ()
    guesses: tuple[str, ...] = ()
    currency: str = "EUR"


FRENCH = """Annuaire des adhérents;;;;;;;;;;;
;;;;;;;;;;;
Dénomination;Adresse du siège;CP;Commune;Tél.;Courriel;Site internet;Date d'adhésion;Nb de salariés;Budget (k€);\
Présidente;N° adhérent;Portable
Les Œuvres d'Été;3 rue de l'Étang;35000;Rennes;+33 2 00 00 00 01;bureau@oeuvres.example;oeuvres.example;\
3 septembre 1998;1 200;;Zoé Quercy;A-17;+33 6 00 00 00 01
Café Préau;1 place Haute;44000;Nantes;;;;14 août 2003;12;;Inès Val;A-18;
Total;;;;;;;;1 212;;;;
"""
SPANISH = """Razón social;Domicilio;Población;Provincia;C.P.;País;Tfno.;Correo electrónico;Página web;Fecha de alta;\
Capital social (€);Presidente;Móvil;Observaciones
Niño y Señal S.L.;Calle Año 3;Córdoba;Córdoba;14001;España;+34 957 00 00 00;hola@senal.example;www.senal.example;\
3 de septiembre de 1998;1.250.000,50;José Ortega y Gasset;600;llamar
Peña Alta;Vía Nº 2;León;León;24001;España;;;;31/12/2004;3.000,00;;;
"""
ITALIAN = """Denominazione;Sede legale;Comune;Prov.;CAP;Nazione;Telefono;PEC;Sito web;Socio dal;N. addetti;Forma giuridica;\
Settore di attività;Stato;Legale rappresentante;Codice fiscale
Città Aperta;Via Però 4;Forlì;FC;47121;Italia;+39 0543 000000;citta@pec.example;citta.example;3 settembre 1998;14;\
Associazione;Cultura;attiva;Rossi, Più;X1
Perché No;Via Su 1;Cefalù;PA;90015;Italia;;;;4 ottobre 2001;3;Cooperativa;Sport;cessata;Bianchi, Noè;X2
"""
PORTUGUESE = """Razão social;Logradouro;Município;UF;CEP;País;Telefone;E-mail;Site;Data de filiação;Funcionários;\
Situação;Responsável;CPF
Associação Pão e Mel;Rua São João 5;São Luís;MA;65000-000;Brasil;+55 98 0000-0000;ola@pao.example;pao.example;\
3 de setembro de 1998;1.200;ativa;Conceição Leão;000
Irmãos Além;Av. Açaí 9;Belém;PA;66000-000;Brasil;;;;14 de março de 2004;80;baixada;;001
"""
DUTCH = """Naam organisatie|Straat en huisnummer|Postcode en plaats|Land|Telefoonnummer|E-mailadres|Website|Lid sinds|\
Aantal medewerkers|Rechtsvorm|Voorzitter|Lidnummer|Opmerkingen
Stichting De Brug|Kade 2|3511 AA Utrecht|Nederland|+31 30 000 0000|info@brug.example|www.brug.example|3 maart 1998|12|\
Stichting|Noor van der Berg|77|bellen
Vereniging Zee|Dijk 1|1011 AB Amsterdam|Nederland||||14 mei 2003|3|Vereniging|Sem Haven|78|
"""
POLISH = """Lp.;Nazwa stowarzyszenia;Ulica i numer;Kod pocztowy;Miejscowość;Województwo;Telefon;Adres e-mail;Strona www;\
Data przystąpienia;Rok założenia;Liczba pracowników;Prezes zarządu;Uwagi
1;Łódki Źródła;Wąska 7;90-001;Łódź;łódzkie;+48 42 000 00 00;biuro@lodki.example;www.lodki.example;\
3 września 1998 r.;1987;12;Zofia Żak;zaległa składka
2;Świt;Główna 1;80-001;Gdańsk;pomorskie;;;;14 października 2003;1999;3;Jan Kąt;
"""
SWEDISH = """Föreningens namn\tGatuadress\tPostnr\tPostort\tLand\tTelefon\tE-post\tHemsida\tMedlem sedan\tAnställda\t\
Ordförande\tPersonnummer
Sjöföreningen Åsö\tStrandvägen 3\t111 22\tVästerås\tSverige\t+46 21 000 00\tinfo@aso.example\taso.example\t\
3 maj 1998\t14\tÅke Öberg\t0
Älvens Vänner\tBrovägen 1\t222 33\tGöteborg\tSverige\t\t\t\t14 oktober 2003\t2\tMärta Å\t1
"""
CZECH = """Název spolku;Ulice a číslo;PSČ;Obec;Země;Telefon;Kontaktní e-mail;Webové stránky;Datum vzniku;Předseda;IČO;Poznámka
Přátelé řeky;Nábřeží 5;301 00;Plzeň;Česko;+420 377 000 000;info@reka.example;www.reka.example;3. září 1998;\
Jiří Říha;00000001;volat
Žižkovský kůň;Hlavní 1;130 00;Praha;Česko;;;;14. října 2003;Věra Dvořáková;00000002;
"""
JAPANESE = """会社名,郵便番号,都道府県,市区町村,電話番号,ホームページ,設立年月日,従業員数,資本金（円）,業種,代表取締役,備考,年会費
株式会社さくら堂,100-0001,東京都,千代田区,+81 3 0000 0000,https://sakura.example,１９９８年９月３日,"１,２００",1億2000万円,\
製造業,山田 太郎,連絡済,1
みどり工房,060-0001,北海道,札幌市,,,2003年10月14日,12,500万円,小売業,佐藤 花子,,1
"""
CHINESE = """企业名称,所属省份,所属城市,企业地址,邮编,电话,官网,成立日期,员工人数,注册资本（万元）,法定代表人,经营状态,序号,手机
绿叶科技有限公司,浙江省,杭州市,春风路3号,310000,+86 571 0000,www.lvye.example,1998年9月3日,120,500,王小明,存续,1,1
春风贸易有限公司,广东省,深圳市,海边路1号,518000,,,2003年10月14日,8,30,李小红,注销,2,2
"""
KOREAN = """단체명\t대표자\t설립일\t주소\t우편번호\t전화번호\t홈페이지\t이메일\t회원 가입일\t직원 수\t비고
푸른하늘재단\t김하늘\t1998년 9월 3일\t서울시 하늘로 3\t04500\t+82 2 000 0000\tsky.example\tinfo@sky.example\t2001년 5월 4일\t12\t전화
초록숲\t이숲\t2003년 10월 14일\t부산시 숲길 1\t48900\t\t\t\t2004년 6월 7일\t3\t
"""
CRM = """Record ID,Company name,Company Domain Name,Phone Number,Street Address,City,State/Region,Postal Code,\
Country/Region,Number of Employees,Total Money Raised ($M),LinkedIn Company Page,Year Founded,Founder 1,Founder 2,\
Company owner,Create Date
1,"Alder & Co, Inc.",alder.example,+1 555 0100,1 Alder Rd,Salem,Oregon,97301,United States,"1,250",3.5,\
https://linkedin.com/company/alder,2012,Ida Alder,Joe Birch,sales@vendor.example,2024-02-03
2,Birch LLC,birch.example,,2 Birch Rd,Austin,Texas,73301,USA,12,,,2015,Kim Cedar,,,2024-02-04
"""
DAOS = [
    {
        "dao_name": "Larch DAO",
        "treasury_usd": 1250000.5,
        "member_count": 120,
        "homepage_url": "https://larch.example",
        "twitter_handle": "@larchdao",
        "token": {"symbol": "LRC"},
        "founders": [{"name": "Ida Larch", "role": "Founder"}, {"name": "Bo Moss", "role": "Core developer"}],
        "created_at": 1609632000,
        "api_key": "secret",
    },
    {"dao_name": "Moss DAO", "treasury_usd": None, "member_count": 7, "created_at": 1641168000},
]
UNKNOWN = """Ettevõte;Kontakt meilile;Koduleht veebis;Riik kaardil;Vaba tekst
Kask Selts;info@kask.example;https://kask.example;Estonia;a
Tamm Liit;info@tamm.example;https://tamm.example;Finland;b
Mänd Ring;info@mand.example;https://mand.example;Estonia;c
"""
SIGNS = """CompanyName, CompanyNumber,RegAddress.CareOf,RegAddress.POBox,RegAddress.AddressLine1, \
RegAddress.AddressLine2,RegAddress.PostTown,RegAddress.County,RegAddress.Country,RegAddress.PostCode,CompanyCategory,\
CompanyStatus,CountryOfOrigin,DissolutionDate,IncorporationDate,Accounts.AccountRefDay,Accounts.AccountRefMonth,\
Accounts.NextDueDate,Accounts.LastMadeUpDate,Accounts.AccountCategory,Returns.NextDueDate,Returns.LastMadeUpDate,\
Mortgages.NumMortCharges,Mortgages.NumMortOutstanding,Mortgages.NumMortPartSatisfied,Mortgages.NumMortSatisfied,\
SICCode.SicText_1,SICCode.SicText_2,SICCode.SicText_3,SICCode.SicText_4,LimitedPartnerships.NumGenPartners,\
LimitedPartnerships.NumLimPartners,URI,PreviousName_1.CONDATE, PreviousName_1.CompanyName, ConfStmtNextDueDate, \
ConfStmtLastMadeUpDate
"""
COMPANIES_HOUSE = f"""{SIGNS}"KELP & SONS LIMITED","00000001","","","1 KELP LANE","","LEEDS","","ENGLAND","LS1 1AA",\
"Private Limited Company","Active","United Kingdom","","04/03/2001","31","3","","","MICRO ENTITY","","","0","0","0","0",\
"01110 - Growing of kelp","","","","0","0","http://business.data.example/00000001","","","",""
"""
WIKIDATA = (
    "item,itemLabel,itemDescription,inception,countryLabel,headquartersLabel,website,ceoLabel\n"
    "http://www.wikidata.example/entity/Q1,Larch Foundation,German foundation,1987-05-01T00:00:00Z,Germany,Bonn,"
    "https://larch.example/,Ida Larch\n"
)
MERGED = workbook(
    {
        "Członkowie": [
            ["Organizacja", "Siedziba", "", "Kontakt", "", "Członek od"],
            ["", "Miasto", "Kraj", "E-mail", "Osoba kontaktowa", ""],
            ["Fundacja Most", "Kraków", "Polska", "a@most.example", "Nowak, Ewa", date(2001, 2, 3)],
            ["Koło Rzeki", "Gdynia", "POL", "b@rzeka.example", "Piotr Las", date(1999, 12, 31)],
        ],
        "Uwagi": [["tekst"], ["a"]],
    },
    merged=("B1:C1", "D1:E1"),
)
NAMES_IN_TWO = """Société,Ville,Nom,Prénom,Fonction,E-mail
Atelier Nord,Lille,Martin,Zoé,Gérante,zoe@nord.example
Atelier Nord,Lille,Petit,Ali,Comptable,zoe@nord.example
Atelier Sud,Nice,Blanc,Léa,Présidente,lea@sud.example
"""

FOREIGN_TABLES = (
    ForeignTable(
        "annuaire.csv",
        FRENCH.encode("iso8859_15"),
        {
            "Dénomination": "name",
            "Adresse du siège": "address",
            "CP": "address.zip",
            "Commune": "address.city",
            "Tél.": "socials.phone_number",
            "Courriel": "socials.email",
            "Site internet": "website",
            "Date d'adhésion": "listedAt",
            "Nb de salariés": "teamSize",
            "Budget (k€)": "",
            "Présidente": "people",
            "N° adhérent": "",
            "Portable": "",
        },
        {
            "name": "Les Œuvres d'Été",
            "address": [{"address_1": "3 rue de l'Étang", "zip": "35000", "city": "Rennes"}],
            "socials": {"phone_number": "+33 2 00 00 00 01", "email": "bureau@oeuvres.example"},
            "website": "https://oeuvres.example",
            "listedAt": "1998-09-03",
            "teamSize": 1200,
        },
        ("Zoé Quercy (Présidente)",),
    ),
    ForeignTable(
        "socios.csv",
        SPANISH.encode("cp1252"),
        {
            "Razón social": "name",
            "Domicilio": "address",
            "Población": "address.city",
            "Provincia": "address.state",
            "C.P.": "address.zip",
            "País": "address.country",
            "Tfno.": "socials.phone_number",
            "Correo electrónico": "socials.email",
            "Página web": "website",
            "Fecha de alta": "listedAt",
            "Capital social (€)": "treasury",
            "Presidente": "people",
            "Móvil": "",
            "Observaciones": "",
        },
        {
            "name": "Niño y Señal S.L.",
            "address": [
                {"address_1": "Calle Año 3", "city": "Córdoba", "state": "Córdoba", "zip": "14001", "country": "ES"}
            ],
            "socials": {"phone_number": "+34 957 00 00 00", "email": "hola@senal.example"},
            "website": "https://www.senal.example",
            "listedAt": "1998-09-03",
            "treasuryAmount": {"amount": "1250000.50", "currency": "EUR"},
        },
        ("José Ortega y Gasset (Presidente)",),
    ),
    ForeignTable(
        "soci.csv",
        ITALIAN.encode("mac_roman"),
        {
            "Denominazione": "name",
            "Sede legale": "address",
            "Comune": "address.city",
            "Prov.": "address.state",
            "CAP": "address.zip",
            "Nazione": "address.country",
            "Telefono": "socials.phone_number",
            "PEC": "socials.email",
            "Sito web": "website",
            "Socio dal": "listedAt",
            "N. addetti": "teamSize",
            "Forma giuridica": "type",
            "Settore di attività": "industry",
            "Stato": "status",
            "Legale rappresentante": "people",
            "Codice fiscale": "",
        },
        {
            "name": "Città Aperta",
            "address": [{"address_1": "Via Però 4", "city": "Forlì", "state": "FC", "zip": "47121", "country": "IT"}],
            "socials": {"phone_number": "+39 0543 000000", "email": "citta@pec.example"},
            "website": "https://citta.example",
            "listedAt": "1998-09-03",
            "teamSize": 14,
            "type": "Associazione",
            "industry": "Cultura",
            "status": "active",
        },
        ("Più Rossi",),
    ),
    ForeignTable(
        "associados.csv",
        PORTUGUESE.encode("utf-16"),
        {
            "Razão social": "name",
            "Logradouro": "address.address_1",
            "Município": "address.city",
            "UF": "address.state",
            "CEP": "address.zip",
            "País": "address.country",
            "Telefone": "socials.phone_number",
            "E-mail": "socials.email",
            "Site": "website",
            "Data de filiação": "listedAt",
            "Funcionários": "teamSize",
            "Situação": "status",
            "Responsável": "people",
            "CPF": "",
        },
        {
            "name": "Associação Pão e Mel",
            "address": [
                {
                    "address_1": "Rua São João 5",
                    "city": "São Luís",
                    "state": "MA",
                    "zip": "65000-000",
                    "country": "BR",
                }
            ],
            "socials": {"phone_number": "+55 98 0000-0000", "email": "ola@pao.example"},
            "website": "https://pao.example",
            "listedAt": "1998-09-03",
            "teamSize": 1200,
            "status": "active",
        },
        ("Conceição Leão",),
    ),
    ForeignTable(
        "ledenlijst.txt",
        DUTCH.encode(),
        {
            "Naam organisatie": "name",
            "Straat en huisnummer": "address.address_1",
            "Postcode en plaats": "address.zip_city",
            "Land": "address.country",
            "Telefoonnummer": "socials.phone_number",
            "E-mailadres": "socials.email",
            "Website": "website",
            "Lid sinds": "listedAt",
            "Aantal medewerkers": "teamSize",
            "Rechtsvorm": "type",
            "Voorzitter": "people",
            "Lidnummer": "",
            "Opmerkingen": "",
        },
        {
            "name": "Stichting De Brug",
            "address": [{"address_1": "Kade 2", "zip": "3511 AA", "city": "Utrecht", "country": "NL"}],
            "socials": {"phone_number": "+31 30 000 0000", "email": "info@brug.example"},
            "website": "https://www.brug.example",
            "listedAt": "1998-03-03",
            "teamSize": 12,
            "type": "Stichting",
        },
        ("Noor van der Berg (Voorzitter)",),
    ),
    ForeignTable(
        "czlonkowie.csv",
        POLISH.encode("cp1250"),
        {
            "Lp.": "",
            "Nazwa stowarzyszenia": "name",
            "Ulica i numer": "address.address_1",
            "Kod pocztowy": "address.zip",
            "Miejscowość": "address.city",
            "Województwo": "address.state",
            "Telefon": "socials.phone_number",
            "Adres e-mail": "socials.email",
            "Strona www": "website",
            "Data przystąpienia": "listedAt",
            "Rok założenia": "extra:founded",
            "Liczba pracowników": "teamSize",
            "Prezes zarządu": "people",
            "Uwagi": "",
        },
        {
            "name": "Łódki Źródła",
            "address": [{"address_1": "Wąska 7", "zip": "90-001", "city": "Łódź", "state": "łódzkie"}],
            "socials": {"phone_number": "+48 42 000 00 00", "email": "biuro@lodki.example"},
            "website": "https://www.lodki.example",
            "listedAt": "1998-09-03",
            "founded": "1987",
            "teamSize": 12,
        },
        ("Zofia Żak (Prezes)",),
    ),
    ForeignTable(
        "medlemmar.tsv",
        SWEDISH.encode("cp1252"),
        {
            "Föreningens namn": "name",
            "Gatuadress": "address.address_1",
            "Postnr": "address.zip",
            "Postort": "address.city",
            "Land": "address.country",
            "Telefon": "socials.phone_number",
            "E-post": "socials.email",
            "Hemsida": "website",
            "Medlem sedan": "listedAt",
            "Anställda": "teamSize",
            "Ordförande": "people",
            "Personnummer": "",
        },
        {
            "name": "Sjöföreningen Åsö",
            "address": [{"address_1": "Strandvägen 3", "zip": "111 22", "city": "Västerås", "country": "SE"}],
            "socials": {"phone_number": "+46 21 000 00", "email": "info@aso.example"},
            "website": "https://aso.example",
            "listedAt": "1998-05-03",
            "teamSize": 14,
        },
        ("Åke Öberg (Ordförande)",),
    ),
    ForeignTable(
        "spolky.csv",
        CZECH.encode("iso8859_2"),
        {
            "Název spolku": "name",
            "Ulice a číslo": "address.address_1",
            "PSČ": "address.zip",
            "Obec": "address.city",
            "Země": "address.country",
            "Telefon": "socials.phone_number",
            "Kontaktní e-mail": "socials.email",
            "Webové stránky": "website",
            "Datum vzniku": "extra:founded",
            "Předseda": "people",
            "IČO": "extra:registrationNumber",
            "Poznámka": "",
        },
        {
            "name": "Přátelé řeky",
            "address": [{"address_1": "Nábřeží 5", "zip": "301 00", "city": "Plzeň", "country": "CZ"}],
            "socials": {"phone_number": "+420 377 000 000", "email": "info@reka.example"},
            "website": "https://www.reka.example",
            "founded": "1998-09-03",
            "registrationNumber": "00000001",
        },
        ("Jiří Říha (Předseda)",),
    ),
    ForeignTable(
        "kaiin.csv",
        JAPANESE.encode("cp932"),
        {
            "会社名": "name",
            "郵便番号": "address.zip",
            "都道府県": "address.state",
            "市区町村": "address.city",
            "電話番号": "socials.phone_number",
            "ホームページ": "website",
            "設立年月日": "extra:founded",
            "従業員数": "teamSize",
            "資本金（円）": "treasury",
            "業種": "industry",
            "代表取締役": "people",
            "備考": "",
            "年会費": "",
        },
        {
            "name": "株式会社さくら堂",
            "address": [{"zip": "100-0001", "state": "東京都", "city": "千代田区"}],
            "socials": {"phone_number": "+81 3 0000 0000"},
            "website": "https://sakura.example",
            "founded": "1998-09-03",
            "teamSize": 1200,
            "treasuryAmount": {"amount": "120000000.00", "currency": "JPY"},
            "industry": "製造業",
        },
        ("山田 太郎 (代表)",),
        currency="JPY",
    ),
    ForeignTable(
        "qiye.csv",
        CHINESE.encode("gb18030"),
        {
            "企业名称": "name",
            "所属省份": "address.state",
            "所属城市": "address.city",
            "企业地址": "address",
            "邮编": "address.zip",
            "电话": "socials.phone_number",
            "官网": "website",
            "成立日期": "extra:founded",
            "员工人数": "teamSize",
            "注册资本（万元）": "treasury",
            "法定代表人": "people",
            "经营状态": "status",
            "序号": "",
            "手机": "",
        },
        {
            "name": "绿叶科技有限公司",
            "address": [{"address_1": "春风路3号", "state": "浙江省", "city": "杭州市", "zip": "310000"}],
            "socials": {"phone_number": "+86 571 0000"},
            "website": "https://www.lvye.example",
            "founded": "1998-09-03",
            "teamSize": 120,
            "treasuryAmount": {"amount": "5000000.00", "currency": "CNY"},
            "status": "active",
        },
        ("王小明 (法定代表人)",),
        currency="CNY",
    ),
    ForeignTable(
        "danche.tsv",
        KOREAN.encode("cp949"),
        {
            "단체명": "name",
            "대표자": "people",
            "설립일": "extra:founded",
            "주소": "address",
            "우편번호": "address.zip",
            "전화번호": "socials.phone_number",
            "홈페이지": "website",
            "이메일": "socials.email",
            "회원 가입일": "listedAt",
            "직원 수": "teamSize",
            "비고": "",
        },
        {
            "name": "푸른하늘재단",
            "founded": "1998-09-03",
            "address": [{"address_1": "서울시 하늘로 3", "zip": "04500"}],
            "socials": {"phone_number": "+82 2 000 0000", "email": "info@sky.example"},
            "website": "https://sky.example",
            "listedAt": "2001-05-04",
            "teamSize": 12,
        },
        ("김하늘 (대표)",),
    ),
    ForeignTable(
        "crm.csv",
        CRM.encode(),
        {
            "Record ID": "",
            "Company name": "name",
            "Company Domain Name": "website",
            "Phone Number": "socials.phone_number",
            "Street Address": "address.address_1",
            "City": "address.city",
            "State/Region": "address.state",
            "Postal Code": "address.zip",
            "Country/Region": "address.country",
            "Number of Employees": "teamSize",
            "Total Money Raised ($M)": "",
            "LinkedIn Company Page": "socials.linkedin",
            "Year Founded": "extra:founded",
            "Founder 1": "people",
            "Founder 2": "people",
            "Company owner": "",
            "Create Date": "listedAt",
        },
        {
            "name": "Alder & Co, Inc.",
            "website": "https://alder.example",
            "socials": {"phone_number": "+1 555 0100", "linkedin": "https://linkedin.com/company/alder"},
            "address": [
                {"address_1": "1 Alder Rd", "city": "Salem", "state": "Oregon", "zip": "97301", "country": "US"}
            ],
            "teamSize": 1250,
            "founded": "2012",
            "listedAt": "2024-02-03",
        },
        ("Ida Alder (Founder)", "Joe Birch (Founder)"),
        ("Create Date",),
    ),
    ForeignTable(
        "daos.json",
        json.dumps({"data": {"daos": DAOS}}).encode(),
        {
            "dao_name": "name",
            "treasury_usd": "treasury",
            "member_count": "teamSize",
            "homepage_url": "website",
            "twitter_handle": "socials.twitter",
            "token.symbol": "symbol",
            "founders": "people",
            "created_at": "listedAt",
            "api_key": "",
        },
        {
            "name": "Larch DAO",
            "treasuryAmount": {"amount": "1250000.50", "currency": "USD"},
            "teamSize": 120,
            "website": "https://larch.example",
            "socials": {"twitter": "@larchdao"},
            "symbol": "LRC",
            "listedAt": "2021-01-03",
        },
        ("Ida Larch (Founder)", "Bo Moss (Core developer)"),
        ("member_count", "created_at"),
        currency="USD",
    ),
    ForeignTable(
        "seltsid.csv",
        UNKNOWN.encode(),
        {
            "Ettevõte": "name",
            "Kontakt meilile": "socials.email",
            "Koduleht veebis": "website",
            "Riik kaardil": "address.country",
            "Vaba tekst": "",
        },
        {
            "name": "Kask Selts",
            "socials": {"email": "info@kask.example"},
            "website": "https://kask.example",
            "address": [{"country": "EE"}],
        },
        (),
        ("Ettevõte", "Kontakt meilile", "Koduleht veebis", "Riik kaardil"),
    ),
    ForeignTable(
        "BasicCompanyDataAsOneFile.zip",
        zipped({"BasicCompanyDataAsOneFile.csv": COMPANIES_HOUSE}),
        {
            **{each.strip(): "" for each in SIGNS.strip().split(",")},
            "CompanyName": "name",
            "CompanyNumber": "extra:registrationNumber",
            "RegAddress.AddressLine1": "address.address_1",
            "RegAddress.AddressLine2": "address.address_2",
            "RegAddress.PostTown": "address.city",
            "RegAddress.County": "address.state",
            "RegAddress.Country": "address.country",
            "RegAddress.PostCode": "address.zip",
            "CompanyCategory": "type",
            "CompanyStatus": "status",
            "IncorporationDate": "extra:founded",
            "SICCode.SicText_1": "industry",
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
    ),
    ForeignTable(
        "query.csv",
        WIKIDATA.encode(),
        {
            "item": "extra:wikidata",
            "itemLabel": "name",
            "itemDescription": "description",
            "inception": "extra:founded",
            "countryLabel": "address.country",
            "headquartersLabel": "address.city",
            "website": "website",
            "ceoLabel": "people",
        },
        {
            "wikidata": "http://www.wikidata.example/entity/Q1",
            "name": "Larch Foundation",
            "description": "German foundation",
            "founded": "1987-05-01",
            "address": [{"country": "DE", "city": "Bonn"}],
            "website": "https://larch.example/",
        },
        ("Ida Larch (CEO)",),
    ),
    ForeignTable(
        "organizacje.xlsx",
        MERGED,
        {
            "Organizacja": "name",
            "Siedziba / Miasto": "address.city",
            "Siedziba / Kraj": "address.country",
            "Kontakt / E-mail": "socials.email",
            "Kontakt / Osoba kontaktowa": "people",
            "Członek od": "listedAt",
            "tekst": "body",
        },
        {
            "name": "Fundacja Most",
            "address": [{"city": "Kraków", "country": "PL"}],
            "socials": {"email": "a@most.example"},
            "listedAt": "2001-02-03",
        },
        ("Ewa Nowak",),
    ),
    ForeignTable(
        "ateliers.csv",
        NAMES_IN_TWO.encode(),
        {
            "Société": "name",
            "Ville": "address.city",
            "Nom": "people.last",
            "Prénom": "people.first",
            "Fonction": "people.title",
            "E-mail": "socials.email",
        },
        {
            "name": "Atelier Nord",
            "address": [{"city": "Lille"}],
            "socials": {"email": "zoe@nord.example"},
        },
        ("Zoé Martin (Gérante)", "Ali Petit (Comptable)"),
    ),
)
