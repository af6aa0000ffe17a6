"""A REST application that its tests only read."""

import pytest

from make.published import company, framework, person
from make.rest import Rest


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Sixty companies, thirty people, four frameworks; only read."""
    made = Rest(tmp_path_factory.mktemp("filled"))
    made.publish(
        *(
            company(
                n,
                status=("active", "upcoming", "inactive")[n % 3],
                themes=["rivers"] if n % 2 else [],
                description="A long description. " * 20,
                capTable=[{"address": f"0x{holder}"} for holder in range(30)] if n == 7 else [],
                **({"symbol": f"T{n}"} if n % 4 == 0 else {}),
            )
            for n in range(1, 61)
        ),
        company(61, "a,b", name="Comma"),
        company(62, "中国电信", name="中国电信"),
        *(person(n) for n in range(1, 31)),
        *(framework(n, kind="score" if n % 2 else "program") for n in range(1, 5)),
    )
    yield made
    made.close()
