"""registry.toml: what is read, and how every fault is named."""

import pytest

from muniment.registry_toml import reading
from muniment.registry_toml.document import DEFAULT, RegistrySettings
from muniment.registry_toml.reading import InvalidSettings, check, known_part, parse, read_file

WHOLE = """
[registry]
name = "Guild of Clockmakers"
contact = "office@clocks.example"
licence = "CC BY 4.0"
licence_url = "https://creativecommons.org/licenses/by/4.0/"

[words]
company = "workshop"
companies = "workshops"

[sections]
token = false

[vocabulary]
types = ["Workshop", "School", "Workshop", " "]

[brand]
accent = "#0B5D3B"
accent_dark = "#7fd0a8"

[texts]
heading = "Clocks and their makers"

[legal]
imprint = '''
# Imprint

Hourglass Lane 1
'''

[[fields]]
name = "founded"
"""


def faults(text: str) -> dict[str, str]:
    with pytest.raises(InvalidSettings) as caught:
        parse(text)
    return caught.value.faults


def test_a_whole_file_is_read():
    found = parse(WHOLE)
    assert found.registry.name == "Guild of Clockmakers"
    assert found.words.companies == "workshops"
    assert (found.sections.token, found.sections.proposals) == (False, True)
    assert found.vocabulary.types == ("Workshop", "School")
    assert found.brand.accent == "#0b5d3b"
    assert found.legal.imprint.startswith("# Imprint\n")
    assert found.fields == ({"name": "founded"},)


def test_settings_are_written_as_the_file_that_is_read_as_the_same():
    declared = """
[texts]
footer = 'A "quoted" \\ word'
[[fields]]
name = "level"
choices = ["one", "zwölf"]
labels = { de = "Stufe", "x y" = "a" }
least = 1.5
filter = true
"""
    for text in ("", WHOLE, declared):
        found = parse(text)
        assert parse(reading.written(found)) == found


def test_an_empty_file_declares_nothing():
    assert parse("") == DEFAULT


def test_every_fault_is_named_with_the_nearest_known_name():
    found = faults(
        '[regstry]\nname = "A"\n[brand]\nacent = "#0b5d3b"\nlogo = "../logo.svg"\n[sections]\ntoken = "no"\n'
        "[vocabulary]\ntypes = [1]\n[words]\ncompany = 3\n"
    )
    assert "Did you mean registry?" in found["regstry"]
    assert "Did you mean accent?" in found["brand.acent"]
    assert "beside registry.toml" in found["brand.logo"]
    assert "true or false" in found["sections.token"]
    assert "list of texts" in found["vocabulary.types"]
    assert "quotation marks" in found["words.company"]


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("registry = 1", "registry", "must be a table"),
        ("fields = 1", "fields", "[[fields]]"),
        ("[[fields]]\n" * 101, "fields", "at most 100"),
        ("name = [", "", "not TOML"),
        ("[qqqq]", "qqqq", "Known are registry"),
        ('[registry]\nname = "' + "x" * 81 + '"', "registry.name", "at most 80"),
        ('[registry]\nname = "a\\nb"', "registry.name", "one line"),
        ('[registry]\nname = "a\\u0000b"', "registry.name", "control characters"),
        ('[registry]\nlicence_url = "javascript:alert(1)"', "registry.licence_url", "https://"),
        ('[registry]\nlicence_url = "https://[x"', "registry.licence_url", "https://"),
        ('[registry]\ncontact = "the office"', "registry.contact", "email address"),
        ('[brand]\naccent = "green"', "brand.accent", "#0b5d3b"),
        ("[brand]\nlogo_ratio = true", "brand.logo_ratio", "whole number"),
        (f'[vocabulary]\nthemes = ["{"x" * 61}"]', "vocabulary.themes", "60 characters"),
        (f"[vocabulary]\nthemes = {[str(each) for each in range(201)]}", "vocabulary.themes", "at most 200"),
    ],
)
def test_a_value_that_is_not_accepted_is_refused(text, place, says):
    assert says in faults(text)[place]


def test_a_color_without_contrast_is_refused_with_its_ratio_and_the_nearest_that_passes():
    refused = faults('[brand]\naccent = "#7fd0a8"\n')["brand.accent"]
    assert "4.5:1 is needed" in refused
    nearest = refused.rpartition("Use ")[2].rstrip(".")
    assert parse(f'[brand]\naccent = "{nearest}"').brand.accent == nearest
    dark = faults('[brand]\naccent_dark = "#0b5d3b"\n')["brand.accent_dark"].rpartition("Use ")[2].rstrip(".")
    assert parse(f'[brand]\naccent_dark = "{dark}"').brand.accent_dark == dark


def test_a_legal_page_may_be_a_file_beside(tmp_path):
    (tmp_path / "registry.toml").write_text('[legal]\nprivacy = "privacy.md"\n')
    (tmp_path / "privacy.md").write_text("We keep nothing.")
    assert read_file(tmp_path / "registry.toml").legal.privacy == "We keep nothing."


def test_a_file_that_is_too_large_or_not_text_is_refused(tmp_path):
    file = tmp_path / "registry.toml"
    file.write_bytes(b"#" * (reading.MAX_BYTES + 1))
    with pytest.raises(InvalidSettings, match="larger than"):
        read_file(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidSettings, match="not UTF-8"):
        read_file(file)


def test_settings_of_a_later_version_are_read_as_far_as_they_are_known():
    later = {"registry": {"name": "A", "motto": "B"}, "weather": {"rain": True}}
    assert known_part(later) == check({"registry": {"name": "A"}})
    assert isinstance(known_part({}), RegistrySettings)
