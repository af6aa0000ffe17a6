"""The digest of all published documents depends on every part of them."""

from muniment.store.chain import StateDigest


def test_the_digest_of_the_state_depends_on_kind_key_and_body():
    def digest(*documents):
        found = StateDigest()
        for document in documents:
            found.add(*document)
        return found.digest()

    states = [(), (("a", "b", b"c"),), (("ab", "", b"c"),), (("a", "b", b"d"),), (("a", "b", b"c"), ("a", "c", b"c"))]
    assert len({digest(*state) for state in states}) == len(states)
