"""
The figures of the whole registry.

Source: service document, Stats.
"""

from typing import Final

from muniment.schema.kinds import Integer, Text
from muniment.schema.record import Field, Record

STATS: Final = Record(
    "Stats",
    (
        Field("total", Integer(), "Companies", "Reviewed companies.", example=1, required=True),
        Field(
            "projectsRaising", Integer(), "Raising", "Companies with an open funding round.", example=0, required=True
        ),
        Field("totalTreasury", Text(), "Treasury", "Combined treasury, formatted.", example="$1.2M", required=True),
        Field("founders", Integer(), "People", "People profiles.", example=1, required=True),
        Field("frameworks", Integer(), "Frameworks", "Assessment frameworks of both kinds.", example=1, required=True),
    ),
)
