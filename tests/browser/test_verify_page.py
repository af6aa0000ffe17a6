"""The page that verifies a document of the log in the browser, without asking a server."""

import base64
import json

import pytest

from browser.eyes import violations
from services.log_site import LogSite, encoded, witness_key
from services.origin import company, framework, person

PICTURE = "/pictures/0123456789abcdef0123456789abcdef-144.webp"


@pytest.fixture(scope="module")
def log():
    """Provide a log of 12 leaves; it is asked for proofs, not served."""
    made = LogSite()
    with made:
        made.publish("company", "harbor-trust", company("harbor-trust", logoUrl=PICTURE))
        made.publish("person", "ada-lund", person("ada-lund", "Ada Lund – Ærø"))
        made.publish("framework", "river-score", framework("river-score"))
        for number in range(9):
            made.publish("company", f"more-{number}", company(f"more-{number}"))
        yield made


@pytest.fixture
def page(demo, browser):
    """Provide the page, loaded, and then without a network."""
    context = browser.new_context(viewport={"width": 390, "height": 844})
    made = context.new_page()
    made.goto(f"{demo.url}/data/verify")
    context.set_offline(True)
    yield made
    context.close()


def body_of(log, kind, key):
    return (b'{"data":%b}' % log.documents[kind, key]).decode()


def proof_of(log, kind, key, **query):
    found = log.proof({"kind": kind, "id": key, **query})
    return json.dumps({"data": found})


def enter(page, **fields):
    for name, value in fields.items():
        page.locator(f"#{name}").fill(value)
    page.locator("#outcome").evaluate("outcome => outcome.replaceChildren()")
    page.get_by_role("button", name="Verify").click()
    page.wait_for_selector("#outcome .notice")
    return page.locator("#outcome").inner_text()


def test_a_document_is_verified_offline_with_its_proof_a_kept_checkpoint_and_the_key(page, log):
    told = enter(
        page,
        document=body_of(log, "person", "ada-lund"),
        proof=proof_of(log, "person", "ada-lund"),
        checkpoint=log.note(),
        key=log.vkey(1),
    )
    assert "The document is in the log." in told
    assert "The document is the one that the proof is about: person ada-lund." in told
    assert "The leaf is number 2 of the 12 that the checkpoint covers." in told
    assert "The checkpoint is signed by the key." in told
    assert "Wrong" not in told
    assert "Whether others are shown the same checkpoint" not in told
    assert "Whether this is the newest version" in told


@pytest.mark.parametrize("size", range(1, 13))
def test_each_size_of_a_log_is_verified(page, log, size):
    told = enter(
        page,
        document=body_of(log, "company", "harbor-trust"),
        proof=proof_of(log, "company", "harbor-trust", size=str(size)),
        key=log.vkey(1),
    )
    assert f"The leaf is number 1 of the {size} that" in told
    assert "Wrong" not in told


def test_what_was_not_checked_is_said(page, log):
    document, proof = body_of(log, "person", "ada-lund"), proof_of(log, "person", "ada-lund")
    told = enter(page, document=document, proof=proof)
    assert "Who signed the checkpoint was not checked." in told
    assert "Who signed the checkpoint: you entered no key." in told
    assert "Whether others are shown the same checkpoint" in told


def test_an_address_of_the_server_and_a_line_of_an_export_count_as_the_document(page, log):
    proof = proof_of(log, "company", "harbor-trust")
    body = body_of(log, "company", "harbor-trust")
    assert "Wrong" not in enter(page, proof=proof, document=body.replace(PICTURE, f"https://registry.example{PICTURE}"))
    assert "Wrong" not in enter(page, proof=proof, document=log.documents["company", "harbor-trust"].decode() + "\n")
    row = (b'{"framework":%b}' % log.documents["framework", "river-score"]).decode()
    assert "Wrong" not in enter(page, proof=proof_of(log, "framework", "river-score"), document=row)


def test_cosignatures_of_the_witnesses_that_are_named_are_verified(page, log):
    document, proof = body_of(log, "person", "ada-lund"), proof_of(log, "person", "ada-lund")
    note = log.cosigned_note(12, {1: 1_796_000_000, 2: 1_796_000_060})
    first, second, third = [witness_key(number).text() for number in (1, 2, 3)]
    asked = {"document": document, "proof": proof, "checkpoint": note, "key": log.vkey(1)}
    told = enter(page, **asked, witnesses=f"{first}\n{second}\n")
    assert "The document is in the log." in told
    assert "The witness witness1.example has cosigned the checkpoint: " in told
    assert "2026" in told
    assert "The witness witness2.example has cosigned the checkpoint: " in told
    assert "Wrong" not in told
    told = enter(page, **asked, witnesses=f"{first} {third}")
    assert "The document is not shown to be in the log." in told
    assert "The witness witness3.example has not cosigned the checkpoint." in told
    # A cosignature of another time than the one that was signed.
    line = note.splitlines()[-1]
    value = bytearray(base64.b64decode(line.rpartition(" ")[2]))
    value[11] ^= 1
    forged = note.replace(line.rpartition(" ")[2], encoded(bytes(value)))
    told = enter(page, **{**asked, "checkpoint": forged}, witnesses=second)
    assert "The witness witness2.example has not cosigned the checkpoint." in told
    assert "This is not a key." in enter(page, **asked, witnesses=log.vkey(1))
    assert "This is not a key." in enter(page, **{**asked, "key": first}, witnesses="")


def test_a_proof_with_cosignatures_needs_no_other_checkpoint(page, log):
    proof = json.loads(proof_of(log, "person", "ada-lund"))
    proof["data"]["checkpoint"] = log.cosigned_note(12, {1: 1_796_000_000})
    document = body_of(log, "person", "ada-lund")
    told = enter(page, document=document, proof=json.dumps(proof), witnesses=witness_key(1).text(), key=log.vkey(1))
    assert "The document is in the log." in told
    assert "Whether others are shown the same checkpoint" not in told


def test_what_is_wrong_is_told(page, log):
    document, proof = body_of(log, "person", "ada-lund"), proof_of(log, "person", "ada-lund")
    told = enter(page, document=document.replace("Lund", "Lind"), proof=proof)
    assert "The document is not shown to be in the log." in told
    assert "The document is another one than the proof is about, or was changed: person ada-lund." in told
    forged = json.loads(proof)
    forged["data"]["leaf"]["change"] = "state"
    told = enter(page, document=document, proof=json.dumps(forged))
    assert "The leaf is not the hash of what the proof says." in told
    moved = json.loads(proof)
    moved["data"]["index"] = 3
    assert "The proof does not lead to the checkpoint." in enter(page, proof=json.dumps(moved))
    moved["data"]["index"] = 12
    assert "The proof does not lead to the checkpoint." in enter(page, proof=json.dumps(moved))
    short = json.loads(proof)
    short["data"]["hashes"].pop()
    assert "The proof does not lead to the checkpoint." in enter(page, proof=json.dumps(short))
    told = enter(page, proof=proof, checkpoint=log.note(5))
    assert "The proof is for 12 leaves and your checkpoint for 5. Fetch the proof with size=5." in told
    assert "The checkpoint is not signed by the key." in enter(page, checkpoint=log.note(), key=log.vkey(2))
    altered = log.note().replace(encoded(log.root(12)), encoded(bytes(32)))
    told = enter(page, checkpoint=altered, key=log.vkey(1))
    assert "The proof does not lead to the checkpoint." in told
    assert "The checkpoint is not signed by the key." in told


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"document": ""}, "Enter a document and its proof."),
        ({"proof": "{}"}, "This is not a proof."),
        ({"proof": "x"}, "This is not a proof."),
        ({"checkpoint": "x"}, "This is not a signed checkpoint."),
        ({"checkpoint": "a\nb\nc\n\n— d e\n"}, "This is not a signed checkpoint."),
        ({"key": "x"}, "This is not a key."),
        ({"key": "a+00000000+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"}, "This is not a key."),
    ],
)
def test_what_is_malformed_is_told(page, log, fields, fault):
    honest = {"document": body_of(log, "person", "ada-lund"), "proof": proof_of(log, "person", "ada-lund")}
    assert fault in enter(page, **{**honest, **fields})


def test_each_file_finds_its_place(page, log):
    files = {
        "a.json": body_of(log, "person", "ada-lund"),
        "b.json": proof_of(log, "person", "ada-lund"),
        "c.txt": log.note(),
    }
    chosen = [{"name": name, "mimeType": "text/plain", "buffer": text.encode()} for name, text in files.items()]
    page.locator("#files").set_input_files(chosen)
    page.wait_for_function("['document', 'proof', 'checkpoint'].every(id => document.getElementById(id).value)")
    assert "The checkpoint is signed by the key." in enter(page, key=log.vkey(1))


def test_the_outcome_is_accessible(page, log):
    enter(page, document=body_of(log, "person", "ada-lund"), proof=proof_of(log, "person", "ada-lund"), checkpoint="")
    assert violations(page) == []
