"""A leaf depends on every part of a change and on its salt; tiles and nodes are those of the tree."""

import pytest

from make.published import company
from muniment.kernel.merkle import EMPTY_ROOT, consistency_proof, inclusion_proof, leaf_hash, root_at, root_of
from muniment.store import public_log
from muniment.store.public_log import StateDigest, Tiles, leaf_of, salts


def test_two_leaves_of_the_same_change_differ_by_their_salt():
    one, two = (leaf_of(salt, "person", "ada", "updated", None) for salt in salts(2))
    assert one != two


def test_no_salt_comes_twice():
    drawn = [*salts(100), *salts(100)]
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


def test_an_empty_log_has_the_root_of_the_empty_tree(publisher):
    assert public_log.continue_log(publisher.connection, 0) == EMPTY_ROOT
    assert public_log.leaves(publisher.connection, 0, 9) == []
    assert public_log.latest_leaf(publisher.connection, "company", "company-1") is None


@pytest.mark.parametrize("size", [1, 255, 256, 257, 700])
def test_every_node_that_is_read_from_tiles_is_that_of_the_tree(publisher, size):
    for number in range(size):
        publisher.publish(company(number % 3 + 1, description=f"Change {number}."))
    hashes = [leaf_hash(leaf.data) for leaf in public_log.leaves(publisher.connection, 0, size)]
    assert len(hashes) == size
    state = public_log.state(publisher.connection)
    tiles = Tiles(publisher.connection)
    assert state.root == root_of(hashes) == root_at(size, tiles.node)

    def from_leaves(level, index):
        return root_of(hashes[index << level : (index + 1) << level])

    for index in {0, size // 2, size - 1}:
        assert inclusion_proof(index, size, tiles.node) == inclusion_proof(index, size, from_leaves)
        assert consistency_proof(index, size, tiles.node) == consistency_proof(index, size, from_leaves)


def test_the_latest_leaf_of_a_document_is_found(publisher):
    for number in (1, 2, 1):
        publisher.publish(company(number))
    assert public_log.latest_leaf(publisher.connection, "company", "company-1").number == 2
    assert public_log.latest_leaf(publisher.connection, "company", "company-2").number == 1
    assert public_log.latest_leaf(publisher.connection, "person", "company-1") is None


def test_a_log_keeps_the_origin_that_it_has(publisher):
    publisher.publish(company(1))
    public_log.name_origin(publisher.connection, "registry.example")
    state = public_log.state(publisher.connection)
    assert state.origin == f"registry.example/{state.name}"
    public_log.name_origin(publisher.connection, "other.example")
    assert public_log.state(publisher.connection).origin == state.origin


def test_the_digest_of_the_state_depends_on_kind_key_and_body():
    def digest(*documents):
        found = StateDigest()
        for document in documents:
            found.add(*document)
        return found.digest()

    states = [(), (("a", "b", b"c"),), (("ab", "", b"c"),), (("a", "b", b"d"),), (("a", "b", b"c"), ("a", "c", b"c"))]
    assert len({digest(*state) for state in states}) == len(states)
