"""Consent, tokens and connected apps are for everyone: axe, both themes, a narrow phone, the keyboard."""

import pytest

from browser.connecting import stations
from browser.eyes import in_the_dark, violations
from browser.tour import OWNER, origin, sign_in, stand


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with stand(tmp_path_factory.mktemp("connecting")) as product:
        yield product


@pytest.mark.whole(keeps=0)
@pytest.mark.requirement("web.tokens")
def test_the_pages_of_an_apps_authorization_are_accessible(browser, site):
    context = browser.new_context(base_url=origin(site), reduced_motion="reduce")
    page, faults, seen = sign_in(context, site, OWNER), [], []
    for name in stations(page, site):
        seen.append(name)
        faults += [(name, "light", each) for each in violations(page)]
        faults += [(name, "dark", each) for each in in_the_dark(page)]
        page.set_viewport_size({"width": 320, "height": 640})
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > 320:
            faults.append((name, "320 px", wide))
        page.set_viewport_size({"width": 1280, "height": 900})
        page.emulate_media(color_scheme="light")
    context.close()
    assert faults == []
    assert seen == ["refused", "tokens-none", "consent", "token-made", "tokens"]
