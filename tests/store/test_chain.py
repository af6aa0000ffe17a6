"""The hashes of the chain depend on every part, and on the salt."""

from itertools import islice

import pytest

from muniment.store.chain import StateDigest, chain_of, genesis_of, leaf_of, link, salts

FORMER = bytes(32)


def test_two_links_of_the_same_change_differ_by_their_salt():
    one, two = (link(FORMER, 7, "person", "ada", "updated", digest=None, salt=salt) for salt in islice(salts(), 2))
    assert one.chain != two.chain
    assert one.chain == chain_of(FORMER, 7, leaf_of(one.salt, "person", "ada", "updated", None))


def test_no_salt_comes_twice():
    drawn = [*islice(salts(), 100), *islice(salts(), 100)]
    assert len(set(drawn)) == 200
    assert {len(salt) for salt in drawn} == {16}


@pytest.mark.parametrize("changed", range(5))
def test_a_leaf_depends_on_every_part(changed):
    parts = [b"salt", "person", "ada", "updated", b"digest"]
    other = [*parts]
    other[changed] += parts[changed][:1]
    assert leaf_of(*parts) != leaf_of(*other)


def test_parts_do_not_run_into_each_other():
    assert leaf_of(b"", "person", "ada", "updated", None) != leaf_of(b"", "persona", "da", "updated", None)


def test_a_value_depends_on_what_came_before_and_on_its_number():
    assert (
        len({chain_of(FORMER, 7, b"leaf"), chain_of(bytes(31) + b"1", 7, b"leaf"), chain_of(FORMER, 8, b"leaf")}) == 3
    )


def test_a_genesis_depends_on_feed_edition_and_documents():
    assert (
        len({genesis_of("a", 1, b"x"), genesis_of("b", 1, b"x"), genesis_of("a", 2, b"x"), genesis_of("a", 1, b"y")})
        == 4
    )


def test_the_digest_of_the_state_depends_on_kind_key_and_body():
    def digest(*documents):
        found = StateDigest()
        for document in documents:
            found.add(*document)
        return found.digest()

    states = [(), (("a", "b", b"c"),), (("ab", "", b"c"),), (("a", "b", b"d"),), (("a", "b", b"c"), ("a", "c", b"c"))]
    assert len({digest(*state) for state in states}) == len(states)
