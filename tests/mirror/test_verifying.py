"""Verifying the log of a registry that is honest, rewritten, forked, silent or hostile."""

import hashlib
import json
import time

import msgspec
import pytest

from muniment.kernel.merkle import leaf_hash
from muniment.kernel.problems import BadRequest, Conflict, Unavailable
from muniment.kernel.signed_notes import Checkpoint, Succession, sign
from muniment.mirror import verifying
from muniment.mirror.origin import Origin
from muniment.mirror.verifying import (
    CLOCKS_DIFFER_BY,
    NO_WITNESSES,
    WITNESSED_WITHIN,
    Deadline,
    Verifier,
    Witnesses,
    default_state,
    digests,
    read_state,
)
from services.log_site import NAME, LogSite, encoded, private_key, witness_key
from services.origin import Given, company, framework, person

pytestmark = pytest.mark.sqlite

REWRITTEN = "history was rewritten"


@pytest.fixture
def site():
    """Provide a registry with a log of five leaves, exported."""
    with LogSite() as origin:
        origin.publish("company", "harbor-trust", company("harbor-trust"))
        origin.publish("company", "öz-vakfı", company("öz-vakfı"))
        origin.publish("person", "ada-lund", person("ada-lund"))
        origin.publish("framework", "river-score", framework("river-score"))
        origin.publish("company", "harbor-trust", company("harbor-trust", themes=["water"]))
        origin.export()
        yield origin


class Runs:
    """The runs of one stranger."""

    def __init__(self, site, state, wait):
        self.site, self.state, self._wait = site, state, wait
        self.told = []

    def __call__(self, *, is_all=False, key="", seconds=60.0, witnesses=NO_WITNESSES):
        deadline = Deadline(seconds, self._wait)
        origin = Origin(self.site.address, wait=deadline.wait, tells=self.told.append)
        try:
            options = {"expected_key": key, "witnesses": witnesses, "tells": self.told.append}
            verifier = Verifier(origin, self.state, deadline, **options)
            return verifier.run(is_all=is_all)
        finally:
            origin.close()

    def contradicting(self):
        return self.state.with_name(self.state.name + ".contradicting")


@pytest.fixture
def run(site, tmp_path, pauses):
    return Runs(site, tmp_path / "state" / "log.json", pauses)


def publish_more(site, count=3):
    for number in range(count):
        site.publish("company", f"more-{number}", company(f"more-{number}"))


def answer(site, path, data):
    site.answers[path] = lambda *_: Given(200, json.dumps({"data": data}).encode())


def changing(site, path, change):
    """Let *change* alter the data of each answer to *path*."""

    def altered(_, given):
        if given.status != 200:
            return given
        content = json.loads(given.body)
        content["data"] = change(content["data"]) or content["data"]
        return Given(200, json.dumps(content).encode())

    site.answers[path] = altered


# ------------------------------------------------------------ what holds


def test_the_first_run_remembers_the_key_and_the_checkpoint(site, run):
    verified = run()
    assert verified.faults == ()
    assert verified.former is None
    assert verified.key == site.vkey(1)
    assert verified.checkpoint == (NAME, 5, site.root(5))
    assert (verified.documents, verified.leaves) == (4, 5)
    remembered = read_state(run.state)
    assert (remembered.key, remembered.checkpoint, remembered.registry) == (site.vkey(1), site.note(), site.address)
    assert run.state.stat().st_mode & 0o777 == 0o600


def test_a_later_run_verifies_that_the_log_was_continued(site, run):
    run()
    publish_more(site)
    verified = run()
    assert verified.former.size == 5
    assert verified.checkpoint.size == 8
    assert verified.former_key is None
    assert read_state(run.state).checkpoint == site.note()
    assert run().former.size == 8


@pytest.mark.parametrize("is_all", [False, True])
def test_an_empty_log_is_verified_and_continued(tmp_path, pauses, is_all):
    with LogSite() as empty:
        empty.export()
        run = Runs(empty, tmp_path / "log.json", pauses)
        assert run(is_all=is_all).checkpoint.size == 0
        publish_more(empty)
        assert run().checkpoint.size == 3


def test_everything_is_compared_through_the_exports(site, run):
    verified = run(is_all=True)
    assert verified.faults == ()
    assert (verified.documents, verified.leaves) == (4, 5)


def test_changes_since_the_export_are_compared_one_by_one(site, run):
    site.unlist("company", "öz-vakfı")
    site.publish("person", "ada-lund", person("ada-lund", "Ada L."))
    publish_more(site)
    verified = run(is_all=True)
    assert verified.faults == ()
    assert verified.leaves == len(site.leaves)


def test_a_document_that_ends_during_the_run_is_no_fault(site, run):
    def ends(_, given):
        del site.answers["/exports/" + site._listed[0]["name"]]
        site.unlist("person", "ada-lund")
        site.erase("framework", "river-score")
        site.publish("company", "harbor-trust", company("harbor-trust", "Other"))
        return given

    site.answers["/exports/" + site._listed[0]["name"]] = ends
    site.put_export("people", b"", 0)
    site.put_export("frameworks", b"", 0)
    verified = run(is_all=True)
    assert verified.faults == ()
    assert verified.leaves == 8


@pytest.mark.parametrize("is_all", [False, True])
def test_a_person_is_erased_and_everything_holds(site, run, is_all):
    run(is_all=True)
    site.erase("person", "ada-lund")
    site.export()
    verified = run(is_all=is_all)
    assert verified.faults == ()
    assert verified.leaves == 6
    assert not any(leaf["key"] == "ada-lund" for leaf in site.leaves)


def test_a_node_that_is_a_moment_behind_is_asked_again(site, run, pauses):
    run()
    site.size = 4

    def catches_up(_, given):
        site.size = None
        return given

    site.answers["/api/v1/log/checkpoint"] = catches_up
    assert run().checkpoint.size == 5
    assert pauses == [verifying.PAUSE_S]


def test_a_document_that_changes_between_two_requests_is_read_again(site, run):
    changes = iter(range(1))

    def changed(_, given):
        for number in changes:
            site.publish("person", "ada-lund", person("ada-lund", f"Ada {number}"))
        return given

    site.answers["/api/v1/people/ada-lund"] = changed
    verified = run()
    assert verified.faults == ()
    assert verified.checkpoint.size == 6
    assert read_state(run.state).checkpoint == site.note()


def test_a_proof_of_a_node_that_is_behind_is_accepted_if_its_checkpoint_is_of_the_same_history(site, run):
    publish_more(site)
    honest = site.proof
    site.proof = lambda query: honest({**query, "size": "6"} if query.get("id") == "ada-lund" else query)
    assert run().faults == ()
    assert read_state(run.state).checkpoint == site.note()


def test_a_key_that_the_remembered_one_has_named_is_accepted_also_after_several(site, run):
    run()
    site.rotate(2)
    site.rotate(3)
    publish_more(site)
    verified = run()
    assert (verified.key, verified.former_key) == (site.vkey(3), site.vkey(1))
    assert read_state(run.state).key == site.vkey(3)
    site.rotate(4)
    assert run().former_key == site.vkey(3)


def test_the_key_may_be_known_from_elsewhere(site, run):
    assert run(key=site.vkey(1)).key == site.vkey(1)
    site.rotate(2)
    assert run(key=site.vkey(1)).key == site.vkey(2)
    assert run(key=site.vkey(2)).key == site.vkey(2)


# ------------------------------------------------------------ another history


def test_an_old_backup_that_was_restored_is_told(site, run, pauses):
    publish_more(site)
    run()
    del site.leaves[6:]
    with pytest.raises(Conflict, match="has 6 leaves, and had 8: leaves are gone") as refused:
        run()
    assert run.contradicting().read_text() == site.note()
    assert "prove it" in refused.value.hint
    assert read_state(run.state).checkpoint != site.note()


def test_another_root_of_the_same_size_is_told_and_the_proof_of_it_kept(site, run):
    run()
    remembered = run.state.read_bytes()
    site.leaves[1]["data"] = leaf_hash(b"another")
    with pytest.raises(Conflict, match=f"two different logs of 5 leaves: its {REWRITTEN}"):
        run()
    assert run.state.read_bytes() == remembered
    assert run.contradicting().read_text() == site.note()


def test_a_longer_log_of_another_history_is_told(site, run):
    run()
    site.leaves[1]["data"] = leaf_hash(b"another")
    publish_more(site)
    with pytest.raises(Conflict, match=f"8 leaves does not continue the signed one of 5: .* {REWRITTEN}"):
        run()


def test_a_proof_that_is_refused_is_no_proof(site, run):
    run()
    publish_more(site)
    site.answers["/api/v1/log/proof"] = lambda *_: Given(400, b"{}")
    with pytest.raises(Conflict, match="the registry refuses the proof with 400"):
        run()


def test_a_proof_with_any_number_of_hashes_is_refused(site, run):
    run()
    publish_more(site)
    answer(site, "/api/v1/log/proof", {"hashes": [encoded(bytes(32))] * 100})
    with pytest.raises(Conflict, match="has 100 hashes instead of"):
        run()
    answer(site, "/api/v1/log/proof", {"hashes": [encoded(bytes(32))] * 129})
    with pytest.raises(BadRequest, match="does not answer as a registry"):
        run()
    answer(site, "/api/v1/log/proof", {"hashes": [encoded(bytes(31))]})
    with pytest.raises(BadRequest, match="does not answer as a registry"):
        run()


def test_a_fork_for_one_reader_is_told_by_the_proof_of_a_document(site, run):
    text = Checkpoint(NAME, 5, leaf_hash(b"fork")).text()
    fork = sign(text, NAME, private_key(1))
    changing(site, "/api/v1/log/proof", lambda data: {**data, "checkpoint": fork})
    with pytest.raises(Conflict, match="two different logs of 5 leaves"):
        run()


def test_a_log_that_began_again_is_another_one(site, run):
    run()
    site.former = {"origin": NAME, "size": 5, "root": encoded(site.root(5))}
    site.name = "registry.example/beef"
    with pytest.raises(Conflict, match=r"It says that the log began again at 2026-11-01.*Nothing shows"):
        run()
    site.former = None
    with pytest.raises(Conflict, match="does not say that it was another one before"):
        run()


def test_a_key_that_was_not_named_is_refused(site, run):
    run()
    site.keys = [2]
    with pytest.raises(Conflict, match=r"not signed by the key .*, nor by one that this key has named"):
        run()


def test_a_checkpoint_of_both_keys_does_not_show_that_one_names_the_other(site, run):
    run()
    site.keys = [2, 1]
    assert run().key == site.vkey(1)
    site.keys = [2]
    with pytest.raises(Conflict, match="not signed by the key"):
        run()


def test_a_former_key_does_not_sign_after_it_has_named_another(site, run):
    site.rotate(2)
    run()
    site.keys, site.successions = [1], []
    with pytest.raises(Conflict, match="not signed by the key"):
        run()


def test_a_succession_is_of_the_log_and_well_formed(site, run):
    run()
    other = Succession("other.example/cafe", site.vkey(2)).text()
    site.successions = [sign(other, NAME, private_key(1))]
    with pytest.raises(BadRequest, match="a succession of its keys is of another log"):
        run()
    site.successions = ["nothing\n"]
    with pytest.raises(BadRequest, match="a succession of its keys is malformed"):
        run()


def test_a_given_key_must_be_the_one_that_signs(site, run):
    with pytest.raises(Conflict, match="not signed by the key"):
        run(key=site.vkey(2))
    assert not run.state.exists()
    with pytest.raises(BadRequest, match="--key is malformed"):
        run(key="name+00000000+AAAA")
    run()
    with pytest.raises(Conflict, match="does not lead to --key"):
        run(key=site.vkey(2))


# ------------------------------------------------------------ malformed


def test_a_registry_without_a_log_is_none_to_verify(site, run):
    site.answers["/api/v1/log"] = lambda *_: Given(404, b"{}")
    with pytest.raises(BadRequest, match="has no public log"):
        run()


@pytest.mark.parametrize(
    ("keys", "reason"),
    [(["x"], "not a verifier key"), ([], "does not answer as a registry"), (["a\x1b[2J"], "does not answer as")],
)
def test_a_malformed_key_is_refused(site, run, keys, reason):
    changing(site, "/api/v1/log", lambda data: {**data, "keys": keys})
    with pytest.raises(BadRequest, match=reason):
        run()


def test_a_key_of_another_name_is_refused(site, run):
    changing(site, "/api/v1/log", lambda data: {**data, "origin": "other.example/cafe"})
    with pytest.raises(BadRequest, match="its key has another name than its log"):
        run()


def test_a_checkpoint_of_another_log_is_refused(site, run):
    text = Checkpoint("other.example/cafe", 5, site.root(5)).text()
    note = sign(text, NAME, private_key(1)).encode()
    site.answers["/api/v1/log/checkpoint"] = lambda *_: Given(200, note)
    with pytest.raises(BadRequest, match="its checkpoint is of another log"):
        run()


@pytest.mark.parametrize("note", [b"", b"\xff\n\n", b"text\n\n"])
def test_a_malformed_checkpoint_is_refused(site, run, note):
    site.answers["/api/v1/log/checkpoint"] = lambda *_: Given(200, note)
    with pytest.raises(BadRequest, match="its checkpoint is malformed"):
        run()


def test_a_checkpoint_has_a_limit(site, run):
    site.answers["/api/v1/log/checkpoint"] = lambda *_: Given(200, b" " * ((64 << 10) + 1))
    with pytest.raises(BadRequest, match="larger than 64 KB"):
        run()


def test_a_run_has_a_deadline(site, run, pauses):
    with pytest.raises(Unavailable, match="answers too slowly"):
        run(seconds=-1.0)
    site.answers["/api/v1/log"] = lambda *_: Given(503, b"", {"Retry-After": "100"})
    with pytest.raises(Unavailable, match="answers too slowly"):
        run(seconds=60.0)
    assert pauses == []


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"form":2}'])
def test_a_damaged_file_of_what_is_remembered_is_told(run, content):
    run.state.parent.mkdir()
    run.state.write_bytes(content)
    with pytest.raises(BadRequest, match="is not what this command remembers"):
        run()
    assert run.state.read_bytes() == content


def test_a_remembered_checkpoint_that_its_key_has_not_signed_is_told(site, run):
    run()
    remembered = msgspec.json.decode(run.state.read_bytes())
    run.state.write_bytes(msgspec.json.encode({**remembered, "key": site.vkey(2)}))
    with pytest.raises(BadRequest, match="no key that is known has signed"):
        run()
    run.state.write_bytes(msgspec.json.encode({**remembered, "key": "x"}))
    with pytest.raises(BadRequest, match="not a verifier key"):
        run()


def test_a_folder_is_no_file_to_remember_in(run):
    run.state.mkdir(parents=True)
    with pytest.raises(BadRequest, match="Is a directory"):
        run()


# ------------------------------------------------------------ documents


def rewrite(site):
    site.documents["person", "ada-lund"] = json.dumps(person("ada-lund", "Forged")).encode()


def remove(site):
    del site.documents["person", "ada-lund"]


def publish_unlogged(site):
    site.documents["person", "eve"] = json.dumps(person("eve")).encode()


@pytest.mark.parametrize(
    ("alter", "fault"),
    [
        (rewrite, "person ada-lund is not the document that was logged: it was changed without a leaf"),
        (publish_unlogged, "person eve is published, and the log has no leaf of it: it was never logged"),
    ],
)
def test_a_document_that_was_changed_without_a_leaf_is_told(site, run, alter, fault):
    run()
    alter(site)
    assert run().faults == (fault,)
    site.export()
    assert run(is_all=True).faults == (fault,)


def test_a_document_that_is_shown_otherwise_than_in_the_exports_is_told_also_if_all_are_compared(site, run):
    rewrite(site)
    fault = "person ada-lund is not the document that was logged: it was changed without a leaf"
    assert run(is_all=True).faults == (fault,)


def test_a_document_that_was_removed_without_a_leaf_is_told(site, run):
    remove(site)
    site.export()
    fault = "person ada-lund is not published, and the log has it: it was removed without a leaf"
    assert run(is_all=True).faults == (fault,)
    # Without it, the proof of the leaf is refused as if the document had ended; the leaves still have it.
    honest = site.proof
    site.proof = lambda query: None if query.get("id") == "ada-lund" else honest(query)
    assert run(is_all=True).faults == (fault,)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"key": "eve"}, "its proof is of another document"),
        ({"kind": None, "key": None, "salt": None, "digest": None}, "its proof is of another document"),
        ({"digest": "0" * 64}, "leaf 2 is not the hash of what it says: a row of the log was changed"),
        ({"change": "state"}, "is not the hash of what it says"),
        ({"salt": None}, "leaf 2 is incomplete"),
    ],
)
def test_a_proof_of_something_else_is_told(site, run, change, reason):
    def changed(data):
        if data.get("leaf", {}).get("key") == "ada-lund":
            data["leaf"].update(change)

    changing(site, "/api/v1/log/proof", changed)
    (fault,) = run().faults
    assert reason in fault


def test_a_proof_of_the_end_of_a_document_does_not_show_it(site, run):
    site.log("person", "ada-lund", "unlisted", None)
    honest = site.proof
    leaf = site.members(site.leaves[5])

    def proof(query):
        if query.get("id") != "ada-lund":
            return honest(query)
        return {**honest({"index": "5"}), "leaf": leaf}

    site.proof = proof
    assert run().faults == ("person ada-lund is not the document that was logged: it was changed without a leaf",)


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"index": 3}, "is not in the log: the proof leads to another root"), ({"size": 4}, "is of another size")],
)
def test_a_proof_of_another_place_is_told(site, run, change, reason):
    def changed(data):
        if data.get("leaf", {}).get("key") == "ada-lund" and "size" not in site.asked[-1]:
            data.update(change)

    changing(site, "/api/v1/log/proof", changed)
    (fault,) = run().faults
    assert reason in fault


def test_a_leaf_that_was_changed_is_told(site, run):
    site.answers["/api/v1/log/leaves"] = lambda request, given: Given(
        200, given.body.replace(encoded(site.leaves[2]["data"]).encode(), encoded(bytes(32)).encode())
    )
    (fault,) = run().faults
    assert fault.startswith("leaf 2 is not in the log")
    with pytest.raises(Conflict, match="do not lead to the root that is signed"):
        run(is_all=True)


def test_a_row_of_a_leaf_that_was_changed_is_told(site, run):
    site.leaves[0]["digest"] = bytes(32)
    fault = "leaf 0 is not the hash of what it says: a row of the log was changed"
    assert run().faults == (fault,)
    assert run(is_all=True).faults == (fault,)


def test_a_proof_of_a_leaf_that_is_refused_is_told(site, run):
    honest = site.proof
    site.proof = lambda query: None if query.get("index") == "1" else honest(query)
    assert run().faults == ("leaf 1 is not in the log: the registry refuses the proof with 404",)


def test_leaves_that_are_not_those_asked_for_are_refused(site, run):
    changing(site, "/api/v1/log/leaves", lambda data: data[:-1] or [])
    site.answers["/api/v1/log/leaves"] = lambda *_: Given(200, b'{"data":[]}')
    for is_all in (False, True):
        with pytest.raises(BadRequest, match=r"does not list \d leaves from \d on"):
            run(is_all=is_all)


def test_a_list_that_has_become_shorter_is_no_fault(site, run):
    def shorter(_, given):
        content = json.loads(given.body)
        return Given(200, json.dumps({**content, "data": []}).encode())

    site.answers["/api/v1/people"] = shorter
    verified = run()
    assert (verified.documents, verified.faults) == (3, ())


def test_a_log_that_is_too_large_is_not_read_as_a_whole(site, run, monkeypatch):
    monkeypatch.setattr(verifying, "MAX_LEAVES", 4)
    with pytest.raises(BadRequest, match="has 5 leaves, more than --all reads"):
        run(is_all=True)


def test_a_run_ends_after_many_faults(site, run, monkeypatch):
    monkeypatch.setattr(verifying, "MAX_FAULTS", 2)
    for leaf in site.leaves:
        leaf["digest"] = bytes(32)
    assert len(run(is_all=True).faults) == 2


# ------------------------------------------------------------ digests and files

PICTURE = b'{"data":{"logoUrl":"%b/pictures/0123456789abcdef0123456789abcdef-144.webp"}}'
SUMMARY = b'{"data":{"x":[{"url":"%b/companies/a%%20b/assessments/c"}]}}'


@pytest.mark.parametrize("body", [PICTURE, SUMMARY])
def test_the_address_of_the_server_is_no_part_of_what_was_logged(body):
    served = body % b"https://registry.example:8443"
    assert hashlib.sha256(body % b"").digest() in set(digests(served))
    assert hashlib.sha256(served).digest() in set(digests(served))


def test_an_address_of_another_server_is_a_part_of_it():
    other = PICTURE % b"https://other.example"
    logged = other + PICTURE % b""
    served = other + PICTURE % b"https://registry.example"
    assert hashlib.sha256(logged).digest() in set(digests(served))
    text = b'{"data":"\\"https://registry.example/pictures/0123456789abcdef0123456789abcdef-144.webp\\""}'
    assert len(list(digests(text))) == 1


def test_addresses_of_many_servers_are_not_tried():
    served = b"".join([PICTURE % (b"https://%d.example" % number) for number in range(10)])
    assert len(list(digests(served))) == 1


def test_each_registry_has_a_file_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_state("https://registry.example") == tmp_path / ".local/state/muniment/log-registry.example.json"
    assert default_state("http://[::1]:8000") == tmp_path / ".local/state/muniment/log-_1_8000.json"


# ------------------------------------------------------------ witnesses


def trusting(*numbers, needed=None):
    keys = tuple(witness_key(number) for number in numbers)
    return Witnesses(keys, len(keys) if needed is None else needed)


def test_the_newest_checkpoint_that_enough_witnesses_have_cosigned_counts(site, run):
    site.cosign(1, 2, 3, size=2)
    site.cosign(1, 2, size=4)
    site.cosign(1)
    for witnesses, size, names in [
        (trusting(1), 5, [1]),
        (trusting(1, 2), 4, [1, 2]),
        (trusting(2, 3, needed=1), 4, [2]),
        (trusting(1, 3), 2, [1, 3]),
        (trusting(1, 2, 3, 9, needed=3), 2, [1, 2, 3]),
    ]:
        witnessed = run(witnesses=witnesses).witnessed
        assert (witnessed.checkpoint.size, witnessed.behind) == (size, 5 - size)
        assert sorted(each.key for each in witnessed.cosignatures) == [witness_key(number) for number in names]
    assert run().witnessed is None


@pytest.mark.parametrize("witnesses", [trusting(9), trusting(1, 9), trusting(1, 2)])
def test_without_the_cosignatures_that_are_needed_nothing_holds(site, run, witnesses):
    site.cosign(1)
    site.cosign(2, size=4)
    with pytest.raises(Conflict, match="shows no checkpoint that"):
        run(witnesses=witnesses)


def test_a_registry_of_a_version_without_witnesses_shows_none(site, run):
    site.answers["/api/v1/log/cosigned"] = lambda *_: Given(404, b"{}")
    with pytest.raises(Conflict, match="shows no checkpoint that 1 of the 1 named witnesses"):
        run(witnesses=trusting(1))


def test_old_cosignatures_are_of_a_log_that_witnesses_refuse(site, run):
    limit = int(time.time() - WITNESSED_WITHIN.total_seconds())
    site.cosign(1, at=limit + 60)
    assert run(witnesses=trusting(1)).witnessed.behind == 0
    ahead = int(time.time() + CLOCKS_DIFFER_BY.total_seconds())
    site.cosigned = [(5, {1: ahead - 60})]
    assert run(witnesses=trusting(1)).witnessed.behind == 0
    site.cosigned = [(5, {1: ahead + 60})]
    with pytest.raises(Conflict, match="shows no checkpoint"):
        run(witnesses=trusting(1))
    site.cosigned = [(5, {1: int(time.time()), 2: limit - 60})]
    assert run(witnesses=trusting(1, 2, needed=1)).witnessed.behind == 0
    with pytest.raises(Conflict, match="enough cosignatures has 5 leaves and is 48 hours old"):
        run(witnesses=trusting(1, 2))


def test_a_fork_that_witnesses_have_cosigned_is_told_from_the_one_that_is_shown(site, run):
    run()
    site.cosign(1)
    note = site.cosigned_note(*site.cosigned[0])
    with LogSite() as other:
        for number in range(6):
            other.publish("company", f"c-{number}", company(f"c-{number}"))
        other.cosign(1, size=5)
        answer(site, "/api/v1/log/cosigned", [{"checkpoint": other.cosigned_note(*other.cosigned[0])}])
    with pytest.raises(Conflict, match="has signed two different logs of 5 leaves"):
        run(witnesses=trusting(1))
    assert run.contradicting().read_text() != note
    assert "witness1.example" in run.contradicting().read_text()


@pytest.mark.parametrize(
    ("change", "problem", "reason"),
    [
        (lambda note: note.replace("witness1.example ", "witness1.example x"), BadRequest, "malformed"),
        (lambda note: note.replace("\n5\n", "\n4\n"), BadRequest, "is not valid"),
        (lambda note: note.replace(f"— {NAME}", "— other.example"), Conflict, "is not signed by the key"),
    ],
)
def test_a_cosigned_checkpoint_that_is_altered_is_refused(site, run, change, problem, reason):
    site.cosign(1)
    answer(site, "/api/v1/log/cosigned", [{"checkpoint": change(site.cosigned_note(*site.cosigned[0]))}])
    with pytest.raises(problem, match=reason):
        run(witnesses=trusting(1))


def test_a_list_of_cosigned_checkpoints_that_is_too_large_is_refused(site, run):
    site.answers["/api/v1/log/cosigned"] = lambda *_: Given(200, b" " * (2 << 20))
    with pytest.raises(BadRequest):
        run(witnesses=trusting(1))


def test_a_log_that_grew_beyond_the_checkpoint_that_was_read_is_verified_up_to_the_cosigned_one(site, run):
    site.size = 4
    site.cosign(1)

    def grown(_, given):
        site.size = None
        return given

    site.answers["/api/v1/log/cosigned"] = grown
    verified = run(witnesses=trusting(1))
    assert verified.witnessed.behind == 0
    assert verified.checkpoint.size == 5
