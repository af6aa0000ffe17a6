"""The vocabulary holds the words of published documents, and no others."""

import random

import pytest

from make.published import Publisher, company, person
from muniment.store.database.erasure import PURGE_INDEX
from muniment.store.search.text_index import of_one_slip, parts_of
from muniment.store.search_text import NAME


def words(publisher, kind="company"):
    return dict(publisher.connection.execute(f"SELECT word, n FROM published_word_{kind}"))


def test_words_are_counted_by_document(publisher):
    publisher.publish(
        company(1, "quern", name="Quern Stone", themes=[], type="", industry=""),
        company(2, "stone", name="Stone", themes=[], type="", industry=""),
    )
    assert words(publisher) == {"≡quern": 1, "≡quernstone": 1, "stone": 1, "≡stone": 1}


def test_any_order_of_changes_leaves_what_the_documents_have(publisher, tmp_path):
    chance = random.Random(20)
    names = ["Blue River", "Green River", "Mill", "River Mill", "Old Weir"]
    present = {}
    for _ in range(120):
        key = f"company-{chance.randint(1, 12)}"
        if chance.random() < 0.3 and key in present:
            publisher.unlist("company", key)
            del present[key]
        else:
            number = int(key.rpartition("-")[2])
            present[key] = company(number, day=chance.randint(0, 3), name=chance.choice(names))
            publisher.publish(present[key])
    fresh = Publisher(tmp_path / "fresh.sqlite3")
    fresh.publish(*present.values())
    assert words(publisher) == words(fresh)
    fresh.close()


def test_nothing_of_an_unlisted_person_remains_in_the_file(publisher, tmp_path):
    publisher.publish(person(1, "ada-quernstone", name="Ada Quernstone"), person(2, name="Bo Linden"))
    publisher.unlist("person", "ada-quernstone")
    assert not [word for word in words(publisher, "person") if "quern" in word]
    connection = publisher.connection
    for statement in PURGE_INDEX:
        connection.execute(statement)
    tables = ("text_person_data", "text_person_content", "fact_person_data", "word_person")
    held = b"".join(
        bytes(str(row), "utf-8") for name in tables for row in connection.execute(f"SELECT * FROM published_{name}")
    )
    assert b"linden" in held
    assert b"quern" not in held


def test_parts_belong_to_words_that_are_held(publisher):
    publisher.publish(company(1, name="Quernstone"), company(2, name="Weir"))
    publisher.publish(company(1, name="Millrace"))
    publisher.unlist("company", "company-2")
    held = dict(publisher.connection.execute("SELECT word, id FROM published_word_company"))
    expected = {(part, number) for word, number in held.items() for part in parts_of(word)}
    assert "≡millrace" in held
    assert set(publisher.connection.execute("SELECT part, word FROM published_part_company")) == expected


@pytest.mark.parametrize("is_name", [True, False])
@pytest.mark.parametrize("word", ["weir", "quern", "harbour", "lanterns", "northhavenmutual", "東京湾岸組合連盟本部"])
def test_a_word_with_one_slip_anywhere_shares_a_part_with_it(word, is_name):
    slips = [
        slipped
        for place in range(len(word) + 1)
        for slipped in (
            word[:place] + word[place + 1 :],
            word[:place] + "x" + word[place:],
            word[:place] + "x" + word[place + 1 :],
            word[:place] + word[place : place + 2][::-1] + word[place + 2 :],
        )
    ]
    assert [slipped for slipped in slips if not of_one_slip(slipped) & parts_of(NAME + word if is_name else word)] == []
