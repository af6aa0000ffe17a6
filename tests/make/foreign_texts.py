# ruff: noqa: E501 - the lines of tables are as long as those of files
"""The texts of tables of fictional organizations in several languages."""

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
WIKIDATA = """item,itemLabel,itemDescription,inception,countryLabel,headquartersLabel,website,ceoLabel
http://www.wikidata.example/entity/Q1,Larch Foundation,German foundation,1987-05-01T00:00:00Z,Germany,Bonn,\
https://larch.example/,Ida Larch
"""
NAMES_IN_TWO = """Société,Ville,Nom,Prénom,Fonction,E-mail
Atelier Nord,Lille,Martin,Zoé,Gérante,zoe@nord.example
Atelier Nord,Lille,Petit,Ali,Comptable,zoe@nord.example
Atelier Sud,Nice,Blanc,Léa,Présidente,lea@sud.example
"""
