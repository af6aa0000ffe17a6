"""Guides as pages."""

import re

import pytest

from muniment.web.reference.guides import BASE, COMPANY, GUIDES, LANGUAGES, render, samples, source

KEYS = [guide.key for guide in GUIDES]


@pytest.mark.parametrize("key", KEYS)
def test_a_guide_names_the_instance_that_shows_it(key):
    html = render(key, "https://names.test", "north-weir")
    assert "https://names.test/api/" in html
    assert BASE not in html
    assert COMPANY not in html


@pytest.mark.parametrize("key", KEYS)
def test_every_alternative_of_a_sample_has_a_tab_of_its_own(key):
    html = render(key, BASE, COMPANY)
    names = re.findall(r'<input type="radio" name="([^"]+)" id="([^"]+)"( checked)?>', html)
    assert len({ident for _, ident, _ in names}) == len(names)
    assert sum(bool(checked) for *_, checked in names) == html.count("<fieldset")
    assert html.count("<pre ") == len(list(samples(key)))
    assert html.count('<div class="sample">') == len(names)


@pytest.mark.parametrize("key", KEYS)
def test_the_languages_of_all_samples_are_known(key):
    assert {sample.language for sample in samples(key)} <= LANGUAGES.keys()


@pytest.mark.parametrize("key", KEYS)
def test_a_guide_has_one_title_and_headings_with_addresses(key):
    assert re.findall(r"(?m)^# ", source(key)) == ["# "]
    html = render(key, BASE, COMPANY)
    assert "<h1" not in html
    assert len(re.findall(r'<h2 id="[\w-]+">', html)) == len(re.findall(r"(?m)^## ", source(key)))
