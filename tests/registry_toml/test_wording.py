"""What a company is called here, in texts that people read."""

import pytest
from django.template import engines
from django.utils.translation import gettext, ngettext

from make.declared import declared
from muniment.languages.speaking import speaking
from muniment.registry_toml.reading import InvalidSettings, check
from muniment.registry_toml.wording import reworded


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("Companies", "Members"),
        ("No company has the slug", "No member has the slug"),
        ("An organization and a company", "A member and a member"),
        ("Your company's page", "Your member's page"),
        ('<a href="/companies">Browse companies</a>', '<a href="/companies">Browse members</a>'),
        ("%(company)s: confirm your position", "%(company)s: confirm your position"),
        ("companies:read and /companies/x", "members:read and /companies/x"),
    ],
)
def test_words_are_replaced_and_addresses_and_placeholders_stay(message, shown):
    assert reworded(message) == message
    with declared(words={"company": "member", "companies": "members"}):
        assert reworded(message) == shown


def test_the_article_fits_the_word_and_the_plural_has_a_default():
    with declared(words={"company": "enterprise"}):
        assert reworded("Add a company. A company: several companies") == (
            "Add an enterprise. An enterprise: several enterprises"
        )


def test_all_texts_of_pages_and_mail_have_the_word():
    template = engines["django"].from_string(
        '{% translate "Browse companies" %} {% blocktranslate %}For {{ n }} companies{% endblocktranslate %}'
        ' {% include "part/empty.html" with empty_title=_("No companies yet") %}'
    )
    built_in = template.render({"n": "old companies"})
    assert "Browse companies For old companies companies" in built_in
    with declared(words={"company": "museum", "companies": "museums"}):
        shown = template.render({"n": "old companies"})
        assert "Browse museums For old companies museums" in shown
        assert "No museums yet" in shown
        assert gettext("Company") == "Museum"
        assert ngettext("%(count)s company", "%(count)s companies", 2) == "%(count)s museums"
        assert ngettext("%(count)s company", "%(count)s companies", 1) == "%(count)s museum"
        with speaking("de"):
            assert gettext("Browse companies") == "Organisationen durchsuchen"
            assert ngettext("%(count)s company", "%(count)s companies", 2) == "%(count)s Organisationen"
    assert template.render({"n": "old companies"}) == built_in
    assert gettext("Company") == "Company"


@pytest.mark.parametrize("words", [{"companies": "members"}, {"company": "<b>"}])
def test_words_that_cannot_be_used_are_refused(words):
    with pytest.raises(InvalidSettings) as caught:
        check({"words": words})
    assert set(caught.value.faults) == {"words.company"}
