"""Signed notes and checkpoints."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from muniment.kernel import signed_notes
from muniment.kernel.signed_notes import (
    MAX_TIMESTAMP,
    Checkpoint,
    NoteError,
    Succession,
    UnknownSignerError,
    VerifierKey,
    WitnessKey,
    cosign,
    cosignatures,
    parse,
    sign,
    verify,
    vkey,
)

# The example of the specification.
SPECIFIED_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
SPECIFIED_NOTE = (
    "This is an example message.\n\n— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2"
    "ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
)
FIRST = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
SECOND = Ed25519PrivateKey.from_private_bytes(bytes(range(32, 64)))
NAME = "registry.example/log"
ROOT = bytes(range(32))


def key_of(private, name=NAME):
    return VerifierKey(name, private.public_key().public_bytes_raw())


def test_the_example_of_the_specification_is_verified():
    assert verify(SPECIFIED_NOTE, [SPECIFIED_KEY]).text == "This is an example message.\n"
    assert verify(SPECIFIED_NOTE.encode(), [SPECIFIED_KEY]).keys == (VerifierKey.parse(SPECIFIED_KEY),)


def test_a_key_has_one_text():
    key = VerifierKey.parse(SPECIFIED_KEY)
    assert key.text() == SPECIFIED_KEY
    assert vkey(key.name, key.public_key) == SPECIFIED_KEY
    assert key.id.hex() == "530d903a"


def test_a_note_with_an_empty_line_in_its_text_is_divided_at_the_last_one():
    note = sign("one\n\ntwo\n", NAME, FIRST)
    assert parse(note).text == "one\n\ntwo\n"
    assert verify(note, [key_of(FIRST)]).text == "one\n\ntwo\n"


def test_a_note_of_two_keys_is_verified_by_each_of_them_and_by_both():
    note = sign("text\n", NAME, SECOND, FIRST)
    assert verify(note, [key_of(FIRST)]).keys == (key_of(FIRST),)
    assert verify(note, [key_of(SECOND).text()]).keys == (key_of(SECOND),)
    assert verify(note, [key_of(FIRST), key_of(SECOND)]).keys == (key_of(SECOND), key_of(FIRST))


def test_signatures_of_others_are_ignored_and_those_alone_prove_nothing():
    witness = sign("text\n", "witness.example", SECOND).rpartition("\n\n")[2]
    note = sign("text\n", NAME, FIRST) + witness
    assert verify(note, [key_of(FIRST)]).keys == (key_of(FIRST),)
    for key in [key_of(SECOND), key_of(FIRST, "another.example")]:
        with pytest.raises(UnknownSignerError):
            verify(note, [key])
    with pytest.raises(UnknownSignerError):
        verify(note, [])


def test_a_signature_line_that_is_there_twice_counts_once():
    note = sign("text\n", NAME, FIRST, FIRST)
    assert verify(note, [key_of(FIRST)]).keys == (key_of(FIRST),)


def test_an_altered_note_is_refused_also_if_another_known_key_has_signed():
    note = sign("text\n", NAME, FIRST).replace("text", "test", 1)
    with pytest.raises(NoteError, match=r"the signature of registry\.example/log is not valid"):
        verify(note, [key_of(FIRST)])
    second = sign("test\n", NAME, SECOND).rpartition("\n\n")[2]
    with pytest.raises(NoteError, match="is not valid"):
        verify(note + second, [key_of(FIRST), key_of(SECOND)])


def test_a_signature_of_another_length_is_refused():
    line = f"— {NAME} {base64.b64encode(key_of(FIRST).id + b'short').decode()}\n"
    with pytest.raises(NoteError, match="is not valid"):
        verify(f"text\n\n{line}", [key_of(FIRST)])


@pytest.mark.parametrize(
    ("note", "reason"),
    [
        (b"", "does not end with a newline"),
        (b"text", "does not end with a newline"),
        (b"text\n", "has no signatures"),
        (b"text\n\n", "has no signatures"),
        (b"\xff\n\n", "not UTF-8"),
        (SPECIFIED_NOTE[:-1], "does not end with a newline"),
        (SPECIFIED_NOTE.replace("message", "mess\tage"), "control character"),
        (SPECIFIED_NOTE.replace("example.com/foo ", "example\r.com/foo "), "control character"),
        ("text\n\n- name AAAAAAA=\n", "does not begin with an em dash"),
        ("text\n\n— AAAAAAA=\n", "has no name"),
        ("text\n\n—  AAAAAAA=\n", "has no name"),
        ("text\n\n— a+b AAAAAAA=\n", "has no name"),
        ("text\n\n— a\u00a0b AAAAAAA=\n", "has no name"),
        ("text\n\n— name AAAAAAB=\n", "is not base64"),
        ("text\n\n— name AAAA AAAA\n", "is not base64"),
        ("text\n\n— name é\n", "is not base64"),
        ("text\n\n— name \n", "is not base64"),
        ("text\n\n— name AAAAAA==\n", "too short"),
        ("text\n\n" + "— name AAAAAAA=\n" * 65, "more than 64 signatures"),
        ("t" * (64 << 10) + "\n\n— name AAAAAAA=\n", "larger than 64 KB"),
    ],
)
def test_a_malformed_note_is_refused(note, reason):
    with pytest.raises(NoteError, match=reason):
        parse(note)


def test_a_note_may_have_as_many_signatures_as_its_limit():
    assert len(parse("text\n\n" + "— name AAAAAAA=\n" * 64).signatures) == 64


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected name"),
        ("example.com/foo", "expected name"),
        (SPECIFIED_KEY.replace("530d903a", "530D903A"), "expected name"),
        (SPECIFIED_KEY.replace("example.com/foo", "exam ple"), "expected name"),
        (SPECIFIED_KEY.replace("example.com/foo", "e" * 301), "expected name"),
        (SPECIFIED_KEY.replace("530d903a", "530d903b"), "another id"),
        (SPECIFIED_KEY.replace("+Ae", "+Be"), "not one of Ed25519"),
        (SPECIFIED_KEY[:-4], "not one of Ed25519"),
        (SPECIFIED_KEY[:-1], "not base64"),
        (SPECIFIED_KEY + "\n", "expected name"),
    ],
)
def test_a_malformed_key_is_refused(text, reason):
    with pytest.raises(NoteError, match=reason):
        VerifierKey.parse(text)


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\u2003b", "n" * 301])
def test_a_name_that_a_note_cannot_have_does_not_sign(name):
    with pytest.raises(NoteError, match="a key's name"):
        sign("text\n", name, FIRST)


@pytest.mark.parametrize("text", ["", "text", "te\x00xt\n", "te\rxt\n"])
def test_a_text_that_a_note_cannot_have_is_not_signed(text):
    with pytest.raises(NoteError):
        sign(text, NAME, FIRST)


def test_a_checkpoint_is_read_as_it_was_written():
    checkpoint = Checkpoint(NAME, 123_456, ROOT)
    assert checkpoint.text() == f"{NAME}\n123456\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
    assert Checkpoint.parse(checkpoint.text()) == checkpoint
    assert Checkpoint.parse(Checkpoint(NAME, 0, ROOT).text()).size == 0


def test_a_checkpoint_may_have_extension_lines():
    checkpoint = Checkpoint(NAME, 1, ROOT)
    assert Checkpoint.parse(checkpoint.text() + "more\nand more\n") == checkpoint


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected the lines"),
        ("origin\n1\n", "expected the lines"),
        (Checkpoint(NAME, 1, ROOT).text()[:-1], "expected the lines"),
        ("\n" + Checkpoint(NAME, 1, ROOT).text().partition("\n")[2], "expected the lines"),
        (Checkpoint(NAME, 1, ROOT).text() + "\n", "expected the lines"),
        (Checkpoint("o" * 301, 1, ROOT).text(), "more than 300 characters"),
        (Checkpoint(NAME, 1, ROOT).text().replace("\n1\n", "\n01\n"), "size is not a number"),
        (Checkpoint(NAME, 1, ROOT).text().replace("\n1\n", "\n-1\n"), "size is not a number"),
        (Checkpoint(NAME, 1, ROOT).text().replace("\n1\n", "\n١\n"), "size is not a number"),
        (Checkpoint(NAME, 1 << 63, ROOT).text(), "size is not a number"),
        (Checkpoint(NAME, 10**20, ROOT).text(), "size is not a number"),
        (Checkpoint(NAME, 1, ROOT[:-1]).text(), "has 31 bytes instead of 32"),
        (Checkpoint(NAME, 1, ROOT).text().replace("=", ""), "is not base64"),
    ],
)
def test_a_malformed_checkpoint_is_refused(text, reason):
    with pytest.raises(NoteError, match=reason):
        Checkpoint.parse(text)


def test_the_largest_size_is_read():
    assert Checkpoint.parse(Checkpoint(NAME, (1 << 63) - 1, ROOT).text()).size == (1 << 63) - 1
    assert signed_notes.MAX_SIZE == (1 << 63) - 1


def test_a_succession_is_read_as_it_was_written_and_is_no_checkpoint():
    succession = Succession(NAME, key_of(SECOND).text())
    assert succession.text() == f"{NAME}\nnext key\n{key_of(SECOND).text()}\n"
    assert Succession.parse(succession.text()) == succession
    with pytest.raises(NoteError, match="size is not a number"):
        Checkpoint.parse(succession.text())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not a succession"),
        (Checkpoint(NAME, 1, ROOT).text(), "not a succession"),
        (Succession(NAME, SPECIFIED_KEY).text()[:-1], "not a succession"),
        (Succession("", SPECIFIED_KEY).text(), "not a succession"),
        (Succession(NAME, SPECIFIED_KEY).text() + "more\n", "not a succession"),
        (Succession(NAME, SPECIFIED_KEY[:-1]).text(), "not base64"),
    ],
)
def test_another_text_is_no_succession(text, reason):
    with pytest.raises(NoteError, match=reason):
        Succession.parse(text)


# ---------------------------------------------------------------- cosignatures

TEXT = Checkpoint(NAME, 7, ROOT).text()
WITNESS = WitnessKey("witness.example/w1", SECOND.public_key().public_bytes_raw())
OTHER = WitnessKey("witness.example/w2", FIRST.public_key().public_bytes_raw())


def cosigned(*lines, text=TEXT):
    return sign(text, NAME, FIRST) + "".join(lines)


def test_a_witness_key_has_one_text_and_is_no_key_of_a_log():
    assert WitnessKey.parse(WITNESS.text()) == WITNESS
    with pytest.raises(NoteError, match="not one of Ed25519"):
        VerifierKey.parse(WITNESS.text())
    with pytest.raises(NoteError, match="not one of a witness"):
        WitnessKey.parse(key_of(FIRST).text())
    with pytest.raises(NoteError, match="another id"):
        WitnessKey.parse(WITNESS.text().replace(WITNESS.id.hex(), "00000000"))


def test_the_cosignatures_of_known_witnesses_are_verified_and_others_ignored():
    first, second = cosign(TEXT, WITNESS.name, SECOND, 5), cosign(TEXT, OTHER.name, FIRST, MAX_TIMESTAMP)
    note = cosigned(first, second)
    assert verify(note, [key_of(FIRST)]).text == TEXT
    found = cosignatures(note, [WITNESS, OTHER])
    assert [(each.key, each.at, each.line + "\n") for each in found] == [
        (WITNESS, 5, first),
        (OTHER, MAX_TIMESTAMP, second),
    ]
    assert [each.key for each in cosignatures(note, [OTHER])] == [OTHER]
    assert cosignatures(note, []) == []
    assert cosignatures(sign(TEXT, NAME, FIRST), [WITNESS]) == []


def test_the_latest_of_two_cosignatures_of_a_witness_counts():
    lines = [cosign(TEXT, WITNESS.name, SECOND, at) for at in (5, 9, 7)]
    assert [each.at for each in cosignatures(cosigned(*lines), [WITNESS])] == [9]


@pytest.mark.parametrize(
    "line",
    [
        cosign(Checkpoint(NAME, 8, ROOT).text(), WITNESS.name, SECOND, 5),  # another size
        cosign(Checkpoint("other.example/log", 7, ROOT).text(), WITNESS.name, SECOND, 5),
        cosign(TEXT, WITNESS.name, SECOND, MAX_TIMESTAMP + 1),
    ],
    ids=["size", "log", "time"],
)
def test_a_cosignature_of_something_else_is_refused(line):
    with pytest.raises(NoteError, match=r"the cosignature of witness\.example/w1"):
        cosignatures(cosigned(line), [WITNESS])


@pytest.mark.parametrize("length", [1, 8, 9, 71, 73])
def test_a_cosignature_of_another_length_is_refused(length):
    line = f"— {WITNESS.name} {base64.b64encode(WITNESS.id + bytes(length)).decode()}\n"
    with pytest.raises(NoteError, match="is not valid"):
        cosignatures(cosigned(line), [WITNESS])


def test_the_time_of_a_cosignature_is_signed():
    value = base64.b64decode(cosign(TEXT, WITNESS.name, SECOND, 5).rsplit(" ", 1)[1])
    later = value[:4] + (6).to_bytes(8) + value[12:]
    line = f"— {WITNESS.name} {base64.b64encode(later).decode()}\n"
    with pytest.raises(NoteError, match="is not valid"):
        cosignatures(cosigned(line), [WITNESS])


def test_a_signature_of_the_log_by_the_key_of_a_witness_is_no_cosignature():
    plain = sign(TEXT, WITNESS.name, SECOND).rpartition("\n\n")[2]
    assert cosignatures(cosigned(plain), [WITNESS]) == []
