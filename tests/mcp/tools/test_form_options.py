"""What an owner may choose and how long it may be, as the tools say it."""

from muniment.mcp.tools.form_options import form_options
from muniment.schema.objects import registry_schema


def test_the_lengths_of_texts_come_before_those_of_amounts_and_objects():
    characters = list(form_options(registry_schema("USD"))["limits"]["characters"])
    assert characters[:2] == ["name", "symbol"]
    assert characters[-4:] == ["treasuryNote", "treasury", "socials", "address"]
