"""The form of a listing: fields of the schema, and repeated rows."""

from muniment.schema.kinds import Choice, Email, Integer, Items, Link, Profile, Text
from muniment.schema.record import Field
from muniment.web.form_fields import form_field


def test_a_text_keeps_its_lines_and_leaves_its_length_to_the_validation():
    made = form_field(Field("body", Text(3, lines=5), "Text", "Say it."))
    assert made.clean("a\r\nb\r\nc") == "a\nb\nc"
    assert (made.widget.attrs["rows"], made.widget.attrs["maxlength"]) == (5, 3)
    assert (made.label, made.help_text, made.required) == ("Text", "Say it.", False)


def test_choices_numbers_and_lists_have_fields_of_their_own():
    choice = form_field(Field("status", Choice(("active", "inactive")), "Status"))
    assert list(choice.choices) == [("", "Not specified"), ("active", "Active"), ("inactive", "Inactive")]
    assert form_field(Field("teamSize", Integer(), "Team")).clean("0") == 0
    themes = form_field(Field("themes", Items(Text(60)), "Themes"))
    assert themes.clean(" a, ,b c ") == ["a", "b c"]
    assert themes.prepare_value(["a", "b c"]) == "a, b c"
    odd = ["a, b", 'the "first"', " spaced ", "plain", '"']
    shown = themes.prepare_value(odd)
    assert shown == '"a, b", "the ""first""", " spaced ", plain, """"'
    assert themes.clean(shown) == odd
    assert themes.clean('the "big" one, "quo"ted, "open, end') == ['the "big" one', '"quo"ted', '"open', "end"]
    assert "HARB" in form_field(Field("x", Text(suggest=("HARB",)), "X")).widget.render("x", "")


def test_an_address_without_a_scheme_is_completed():
    assert form_field(Field("website", Link(), "Website")).clean("sunharvest.example") == "https://sunharvest.example"
    assert form_field(Field("email", Email(), "Email")).clean("Sun <a@sun.example>") == "a@sun.example"
    assert form_field(Field("twitter", Profile(), "X")).clean("x.com/sun") == "https://x.com/sun"
