"""Simple inputs are rendered as Django's templates render them."""

import pytest
from django import forms
from django.forms.renderers import DjangoTemplates

from muniment.web.form_renderer import FormRenderer

HOSTILE = '"><script>alert(1)</script>'


@pytest.mark.parametrize(
    "widget",
    [
        forms.TextInput(attrs={"maxlength": 20, "autofocus": True, "disabled": False, "data-x": HOSTILE}),
        forms.EmailInput(),
        forms.PasswordInput(),
        forms.NumberInput(attrs={"min": 0}),
        forms.URLInput(),
        forms.HiddenInput(),
    ],
)
@pytest.mark.parametrize("value", [None, "", 0, "Ebb & flow", HOSTILE, "ليلى"])
def test_an_input_is_the_same_as_djangos(widget, value):
    shown = [widget.render("name", value, renderer=each()) for each in (FormRenderer, DjangoTemplates)]
    assert shown[0].strip() == shown[1].strip()


@pytest.mark.parametrize("widget", [forms.Textarea(), forms.Select(choices=[("a", "A")]), forms.CheckboxInput()])
def test_every_other_control_is_djangos_own(widget):
    shown = [widget.render("name", "a", renderer=each()) for each in (FormRenderer, DjangoTemplates)]
    assert shown[0] == shown[1]
