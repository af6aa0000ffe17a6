"""People with positions in several organizations are found among those of one."""

from make.published import person
from muniment.store.lists.ties import connected


def test_people_with_positions_in_several_organizations_come_with_the_most_first(publisher, reader):
    publisher.publish(
        person(1, positions=(("Clerk", "a"), ("Chair", "a"))),
        person(2, positions=(("Clerk", "a"), ("Chair", "b"))),
        person(3, positions=(("Clerk", "a"), ("Chair", "b"), ("Guest", "c"))),
        person(4, positions=(("Clerk", "x"), ("Chair", "y"))),
        person(5, name="Anna", positions=(("Clerk", "a"), ("Chair", "b"))),
    )
    reader.refresh()
    asked = [f"person-{n}" for n in (1, 2, 3, 5, 77)]
    assert connected(reader, asked) == ["person-3", "person-5", "person-2"]
    assert connected(reader, []) == []
