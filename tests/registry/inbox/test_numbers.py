"""Numbers that a reviewer should look at."""

import pytest

from muniment.registry.inbox.numbers import jumps, odd_sums


def pools(*shares):
    return {"distribution": {"pools": [{"name": str(n), "percentage": share} for n, share in enumerate(shares)]}}


@pytest.mark.parametrize(
    ("bundle", "found"),
    [
        ({}, []),
        ({"distribution": None, "capTable": []}, []),
        ({"distribution": {"pools": [{"name": "Members"}]}}, []),
        (pools(60, 40), []),
        (pools(33.3, 33.3, 33.3), []),
        (pools(60, 30), ["the pools add up to 90%, not 100%"]),
        (pools(80, 80), ["the pools add up to 160%, not 100%"]),
        ({"capTable": [{"percentage": 40}]}, []),
        ({"capTable": [{"percentage": 70}, {"percentage": 60}]}, ["the cap table adds up to 130%"]),
    ],
)
def test_sums_that_do_not_add_up_are_found(bundle, found):
    assert odd_sums(bundle) == found


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"teamSize": 12}, {"teamSize": 13}, []),
        ({"teamSize": 12}, {"teamSize": 1_200}, ["teamSize"]),
        ({"teamSize": 1_200}, {"teamSize": 12}, ["teamSize"]),
        ({"teamSize": None}, {"teamSize": 1_200}, []),
        ({"treasury": "$1.2M"}, {"treasury": "$1.4M"}, []),
        ({"treasury": "$1.2M"}, {"treasury": "$1.2B"}, ["treasury"]),
        ({"treasury": "$900K"}, {"treasury": "$1M"}, []),
        ({"name": "A 1"}, {"name": "A 2"}, []),
        ({"name": "..."}, {"name": "1.2.3"}, []),
        ({"raising": False}, {"raising": True}, []),
        ({"positions": [{}] * 12}, {"positions": [{}] * 8}, []),
        ({"positions": [{}] * 12}, {"positions": [{}] * 2}, ["positions"]),
    ],
)
def test_large_jumps_are_found(before, after, found):
    assert [name for name, _ in jumps(before, after)] == found
