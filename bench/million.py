"""
Measure search in a registry of a million companies: `python bench/million.py make FILE`, then `measure FILE`.

Names, texts, places and people are fictional; their words follow a Zipf distribution, so that the commonest are in a
third of all documents and most are in one. They are published as the product does, without a database. Questions are
asked on a thread while another reads random pages and documents; figures are CPU time of the asking thread, and
wall-clock time of the other reads. Exits with 1 if a goal is missed.
"""

import multiprocessing
import random
import sqlite3
import sys
import time
from itertools import accumulate, chain, islice
from pathlib import Path

from msgspec import structs

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "bench"))

from search import SLIPS

from make.published import AT, company, person
from muniment.registry.publishing import search_texts
from muniment.store import published

VOCABULARY = 300_000
BATCH = 20_000
CHUNK = 500
PER_KIND = 200
ONSETS = [
    "b",
    "c",
    "d",
    "f",
    "g",
    "h",
    "j",
    "k",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "v",
    "w",
    "z",
    "br",
    "ch",
    "cr",
    "dr",
    "fl",
    "gl",
    "gr",
    "kl",
    "pr",
    "sh",
    "sk",
    "sl",
    "st",
    "str",
    "th",
    "tr",
]
VOWELS = ["a", "e", "i", "o", "u", "ai", "ea", "io", "ou"]
ENDS = ["", "", "n", "r", "s", "l", "m", "nd", "rt", "x"]
TYPES = ("corporation", "DAO", "nonprofit", "foundation", "open source project", "cooperative")
INDUSTRIES = ("Software", "Energy", "Water", "Finance", "Health", "Education", "Fisheries", "Research")
TITLES = ("Chair", "Director", "Treasurer", "Maintainer", "Head of research")
EXACT, TEXT, FORGIVING = 3.0, 15.0, 25.0
"""Goals in milliseconds of CPU, for 95 of 100 questions."""
OTHERS_MS = 10.0
"""The goal for 99 of 100 other reads, in milliseconds of wall-clock time."""
KINDS = {
    "slug": EXACT,
    "symbol": EXACT,
    "name": EXACT,
    "domain": EXACT,
    "common word": TEXT,
    "word": TEXT,
    "two words": TEXT,
    "three words": TEXT,
    "place": TEXT,
    "theme": TEXT,
    "person of a company": TEXT,
    "two letters": TEXT,
    "common word and type": TEXT,
    "common word, newest": TEXT,
    **{f"slip: {slip}": FORGIVING for slip in SLIPS},
    "two slips": FORGIVING,
    "extra word": FORGIVING,
    "nothing": FORGIVING,
    "person with a slip": FORGIVING,
}


class Words:
    """Fictional words, the commonest first; one is drawn with a probability of one by its rank."""

    def __init__(self, seed, count):
        chance = random.Random(seed)
        found = {}
        while len(found) < count:
            syllables = chance.choices((1, 2, 3), (2, 6, 2))[0]
            parts = [chance.choice(part) for _ in range(syllables) for part in (ONSETS, VOWELS)]
            found["".join(parts) + chance.choice(ENDS)] = None
        self.words = list(found)
        self.weights = list(accumulate(1 / (rank + 2.7) for rank in range(count)))

    def some(self, chance, count):
        return chance.choices(self.words, cum_weights=self.weights, k=count)


def coined(number):
    """Return a word of its own for each number."""
    number, letters = number * 7_919, []
    while number:
        number, onset = divmod(number, 20)
        number, vowel = divmod(number, 5)
        letters += [ONSETS[onset], VOWELS[vowel]]
    return "".join(letters)


class Registry:
    """A fictional registry, of which each company is made from its number alone."""

    def __init__(self):
        self.words = Words(1, VOCABULARY)
        self.cities = [word.title() for word in Words(2, 3_000).words]
        self.themes = Words(3, 400)
        self.given = Words(4, 2_000)
        self.family = Words(5, 20_000)

    def row(self, number):
        chance = random.Random(number)
        words = self.words.some(chance, chance.choice((1, 1, 2)))
        is_own = number % 5 > 0
        if is_own:
            words = [coined(number), *words[number % 2 :]]
        name = " ".join(word.title() for word in words)
        slug = "-".join(words) if is_own else f"{'-'.join(words)}-{number}"
        host = f"{slug}.example"
        return {
            "name": name,
            "slug": slug,
            "symbol": f"{name[:2].upper()}{number % 3_000}" if number % 8 == 0 else "",
            "website": f"https://www.{host}/start" if number % 10 else "",
            "dao_website": "",
            "socials": {"twitter": f"https://x.example/{slug}"},
            "themes": list(dict.fromkeys(self.themes.some(chance, 3))),
            "type": chance.choice(TYPES),
            "industry": chance.choice(INDUSTRIES),
            "address": [{"city": chance.choice(self.cities), "state": f"S{number % 60}", "country": "NO"}],
            "extra": {"registration": f"NO-{number:09}"},
            "description": " ".join(self.words.some(chance, 12)),
            "body": " ".join(self.words.some(chance, 40)) if number % 4 == 0 else "",
            "people": [
                (f"{one}-{number}", f"{one.title()} {two.title()}", chance.choice(TITLES))
                for one, two in zip(*(part.some(chance, number % 4) for part in (self.given, self.family)), strict=True)
            ],
        }  # fmt: skip

    def company(self, number):
        row = self.row(number)
        shown = {key: row[key] for key in ("name", "type", "industry", "themes", "website", "socials", "address")}
        symbol = {"symbol": row["symbol"]} if row["symbol"] else {}
        made = company(
            number, row["slug"], day=700_000 + number // 200, description=row["description"], body=row["body"], **shown,
            **symbol,
        )  # fmt: skip
        return structs.replace(
            made,
            texts=(search_texts.label_of(row), row["description"], row["body"]),
            search=search_texts.of_company(row, row["people"]),
        )

    def person(self, number):
        slug, name, title = self.row(number * 4 + 3)["people"][0]
        return structs.replace(person(number, slug, name=name), texts=(slug, title, ""))


def chunk(asked):
    """Return documents, in a process that keeps its registry."""
    kind, first, last = asked
    if not _registry:
        _registry.append(Registry())
    return [getattr(_registry[0], kind)(number) for number in range(first, last)]


_registry: list[Registry] = []


def make(path, count):
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -1000000"):
        connection.execute(f"PRAGMA {setting}")
    published.create(connection)
    began = time.process_time()
    asked = [
        (kind, first, min(first + CHUNK, last + 1))
        for kind, last in (("person", count // 50), ("company", count))
        for first in range(1, last + 1, CHUNK)
    ]
    with multiprocessing.Pool(1) as pool:
        made = pool.imap(chunk, asked)
        while batch := list(islice(made, BATCH // CHUNK)):
            connection.execute("BEGIN")
            published.load(connection, chain.from_iterable(batch), at=AT)
            connection.execute("COMMIT")
            print(
                batch[-1][-1].kind,
                batch[-1][-1].position % (1 << 40),
                f"{time.process_time() - began:.0f} s",
                flush=True,
            )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    print(f"{count:,} companies: {time.process_time() - began:.0f} s CPU, {path.stat().st_size >> 20} MB")


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]))
