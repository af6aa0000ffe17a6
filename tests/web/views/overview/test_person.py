"""The page of a person: how many organizations, what they have in common, and when the profile changed."""

import re

from make.pages import valid
from make.published import company, person


def test_a_person_shows_figures_history_and_a_question_for_an_agent(visitor, publisher):
    made = person(1, "ida", name="Ida <b>", positions=(("Clerk", "quay"), ("Chair", "quay"), ("Guest", "mole")))
    publisher.publish(company(1, "quay"), company(2, "mole"), made)
    publisher.publish(made, fields=("bio",))
    html = visitor.get("/people/ida").text
    valid(html)
    assert re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", html)[:2] == [
        ("Organizations", "2"),
        ("Positions", '<a href="/people/ida/positions">3</a>'),
    ]
    assert re.search(r"Updated: <span[^>]*>(Bio|About)", html)
    assert "say about Ida &lt;b&gt;, http://testserver/people/ida?" in html
    assert 'href="/compare?c=quay&amp;c=mole"' in html
    assert visitor.get("/compare?c=quay&c=mole").status_code == 200


def test_one_organization_or_very_many_are_not_compared(visitor, publisher):
    publisher.publish(
        person(1, "one", positions=(("Clerk", "quay"),)),
        person(2, "many", positions=tuple(("Clerk", f"place-{n}") for n in range(5))),
        person(3, "none"),
    )
    for slug in ("one", "many", "none"):
        html = visitor.get(f"/people/{slug}").text
        valid(html)
        assert "/compare" not in html
    assert 'class="figures' not in visitor.get("/people/one").text, "a single position is on the page itself"
    assert 'class="figures' not in visitor.get("/people/none").text
