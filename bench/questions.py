"""
Measure questions in plain words on a real registry: `make bench-questions`, or `python bench/questions.py --seed 2`.

Takes the registry in the import form that MUNIMENT_SAMPLE_DATA names (or --data). Counts how many of 300 random names,
of all names, and of texts of 4 other kinds are taken for questions, and how many of 500 questions made of the
registry's own values are read as those values. Reports the CPU time; exits with 1 if a goal is missed.
"""

import argparse
import json
import os
import random
import sqlite3
import tempfile
import time
from collections import Counter, defaultdict
from datetime import date
from pathlib import Path

from sample import import_sample

from muniment.schema.objects import registry_schema
from muniment.store.search.questions.asking import read

LISTINGS = registry_schema("USD").listings
NAMES, QUESTIONS, PARTS = 300, 500, 2_000
TYPICAL_MS = 1.0
LEAST_READ = 0.98
FORMS = (
    ("which {type} on {theme} are raising", ("type", "theme"), {"raising": "true"}),
    ("{type} on {theme} with a token", ("type", "theme"), {"hasToken": "true"}),
    ("show me {status} {type} listed since 2021", ("status", "type"), {"listedFrom": "2021-01-01"}),
    ("companies on {theme} with a treasury over $2 million", ("theme",), {"treasuryMin": "2M"}),
    ("{type} in {industry} with more than 20 people", ("type", "industry"), {"teamMin": "21"}),
    ("largest {type} without a cap table", ("type",), {"sort": "treasury", "hasCapTable": "false"}),
    ("welche {type} zu {theme} sind nicht offen", ("type", "theme"), None),
)
"""Questions, the values in them and the further filters; None if a filter cannot say it."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("MUNIMENT_SAMPLE_DATA") or None)
    parser.add_argument("--instance", type=Path, help="the data folder of an instance that holds the same registry")
    parser.add_argument("--seed", type=int, default=20)
    given = parser.parse_args()
    if given.data is None:
        print("MUNIMENT_SAMPLE_DATA is not set: there is no registry to ask.")
        return 0
    with tempfile.TemporaryDirectory() as made:
        folder = given.instance or Path(made)
        if given.instance is None:
            import_sample(given.data, folder)
        with sqlite3.connect(f"file:{folder / 'muniment.sqlite3'}?mode=ro", uri=True) as connection:
            lines = (given.data / "companies.jsonl").read_text().splitlines()
            names = [json.loads(line)["company"]["name"] for line in lines if line.strip()]
            return report(Asked(connection), names, random.Random(given.seed))


class Asked:
    """Asks, and measures the CPU time of each question."""

    def __init__(self, connection):
        self.connection = connection
        self.ms = []
        read(
            connection, LISTINGS, "which companies are raising", date(2026, 1, 1)
        )  # the words of the languages are read once

    def __call__(self, text):
        started = time.process_time()
        reading = read(self.connection, LISTINGS, text, date(2026, 1, 1))
        self.ms.append((time.process_time() - started) * 1000)
        return reading

    def cost(self):
        ms, self.ms = sorted(self.ms), []
        return f"CPU ms: median {ms[len(ms) // 2]:.2f}, p95 {ms[len(ms) * 95 // 100]:.2f}, highest {ms[-1]:.2f}", ms


def report(ask, names, chance):
    missed = False
    for title, texts, most in (
        (f"{NAMES} random names", chance.sample(names, min(NAMES, len(names))), 0),
        ("all names", names, 0),
        *((f"names {title}", texts, len(texts) // 100) for title, texts in parts(names, chance)),
    ):
        taken = [text for text in texts if ask(text) is not None]
        print(f"{title}: {len(taken)} of {len(texts)} taken for questions {taken[:5]}; {ask.cost()[0]}")
        missed = missed or len(taken) > most
    right, wrong = 0, []
    for text, filters in questions(ask.connection, chance):
        reading = ask(text)
        found = None if reading is None else {chip.name: chip.value for chip in reading.chips}
        right += found == filters
        if found != filters:
            wrong.append((text, found))
    cost, ms = ask.cost()
    print(f"questions of the registry's values: {right} of {QUESTIONS} read as meant; {cost}")
    for text, found in wrong[:10]:
        print(f"  not as meant: {text!r}: {found}")
    return int(missed or right < QUESTIONS * LEAST_READ or ms[len(ms) // 2] > TYPICAL_MS)


def parts(names, chance):
    """Yield parts of names: most of them do not name anything."""
    wordy = [name.split() for name in names if len(name.split()) > 2]
    some = chance.sample(wordy, min(PARTS, len(wordy)))
    yield "without the last word", [" ".join(words[:-1]) for words in some]
    yield "without the first word", [" ".join(words[1:]) for words in some]
    yield "in another order", [" ".join(reversed(words)) for words in some]
    yield "two words of them", [" ".join(chance.sample(words, 2)) for words in some]


def questions(connection, chance):
    """Yield questions with their filters, of values that no other filter has."""
    statement = "SELECT name, value, folded FROM published_value WHERE kind = 'company' AND n > 0"
    rows = connection.execute(statement).fetchall()
    held = Counter(folded for _, _, folded in rows)
    values = defaultdict(list)
    for name, value, folded in rows:
        if held[folded] == 1 and folded != "us":  # in a question, "for us" is no theme
            values[name].append(value)
    for _ in range(QUESTIONS):
        form, names, further = chance.choice(FORMS)
        chosen = {name: chance.choice(values[name]) for name in names}
        yield form.format(**chosen), None if further is None else chosen | further


if __name__ == "__main__":
    raise SystemExit(main())
