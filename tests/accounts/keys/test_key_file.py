"""One setting may hold several keys, and no key that worked before stops working."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.accounts.keys.key_file import candidates, fingerprint, listed, new_key, path_of, secret_text
from muniment.config import Config, ConfigError

LONG, OTHER = "a" * 32, "b" * 40


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (f"{LONG},{OTHER}", (LONG, OTHER)),
        (f"{LONG}, {OTHER}", (LONG, OTHER)),
        (f"{LONG}\n{OTHER}\n", (LONG, OTHER)),
        (f"{LONG},short", (LONG, "short")),
        (f"{LONG},{LONG}", (LONG,)),
        (LONG, (LONG,)),
        (f"{LONG}\n", (f"{LONG}\n",)),  # a key file that an editor wrote
        (f"{LONG},", (f"{LONG},",)),
        ("correct,horse,battery", ("correct,horse,battery",)),
        ("pass phrase, with a comma and more than thirty-two signs", None),
        ("", ("",)),
    ],
)
def test_a_list_begins_with_a_long_key(text, keys):
    assert listed(text) == (keys or (text,))


@given(st.text(), st.text())
def test_the_whole_text_and_a_former_key_with_commas_are_always_among_the_readings(text, former):
    assert text in candidates(text)
    if former.strip() and former.strip() == former:
        assert former in candidates(f"{LONG},{former}")


def test_a_fingerprint_names_a_key_and_does_not_contain_it():
    key = new_key()
    assert fingerprint(key) == fingerprint(key) != fingerprint(key + "x")
    assert len(fingerprint(key)) == 16
    assert listed(f"{key},{new_key()}")[0] == key


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\xfe"], ids=["empty", "blank", "no text"])
def test_a_damaged_key_file_is_never_replaced_by_a_new_key(content, tmp_path):
    config = Config({"MUNIMENT_DATA": str(tmp_path)})
    made = secret_text(config)
    assert secret_text(config) == made, "the first start makes one"
    path_of(config).write_bytes(content)
    with pytest.raises(ConfigError, match="is empty or damaged"):
        secret_text(config)
    assert path_of(config).read_bytes() == content
