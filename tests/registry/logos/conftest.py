"""A site with logos, which this process may fetch from."""

import pytest

from services.logo_site import LogoSite


@pytest.fixture(scope="module")
def running_site():
    found = LogoSite()
    yield found
    found.close()


@pytest.fixture
def site(running_site, monkeypatch):
    from muniment.registry.logos import fetching

    running_site.files, running_site.asked, running_site.most_at_once = {}, [], 0
    monkeypatch.setattr(fetching, "connection", running_site.connection)
    return running_site
