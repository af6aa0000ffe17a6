"""
Draw the countries of the world for the map of places: ``checks/world_map.py countries-110m.json`` writes world.json.

The file comes from the npm package world-atlas 2.0.2 (ISC), a form of Natural Earth 1:110m, which is in the public
domain. Coordinates are projected by Equal Earth (Šavrič, Patterson, Jenny 2018) and rounded to whole pixels.
"""

import json
import math
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import pycountry

WIDTH: Final = 960
TARGET: Final = Path(__file__).parents[1] / "src/muniment/web/views/overview/world.json"
LEFT_OUT: Final = {"010"}
"""Antarctica, which would be a fifth of the picture."""
_A: Final = (1.340264, -0.081106, 0.000893, 0.003796)
_REACH: Final = 2.7066
"""Half the width of the projected world."""
_NORTH: Final = 84
_SOUTH: Final = -56

Point = tuple[float, float]


def project(point: Point) -> Point:
    """Return a longitude and latitude as a place on the plane, by Equal Earth."""
    longitude, latitude = (math.radians(each) for each in point)
    angle = math.asin(math.sqrt(3) / 2 * math.sin(latitude))
    a1, a2, a3, a4 = _A
    square = angle * angle
    slope = a1 + 3 * a2 * square + square**3 * (7 * a3 + 9 * a4 * square)
    x = 2 * math.sqrt(3) * longitude * math.cos(angle) / (3 * slope)
    return x, angle * (a1 + a2 * square + square**3 * (a3 + a4 * square))


_TOP: Final = project((0, _NORTH))[1]
_SCALE: Final = WIDTH / (2 * _REACH)
HEIGHT: Final = round((_TOP - project((0, _SOUTH))[1]) * _SCALE)


def pixel(point: Point) -> tuple[int, int]:
    x, y = project(point)
    return round((x + _REACH) * _SCALE), round((_TOP - y) * _SCALE)


def arcs_of(topology: dict) -> list[list[Point]]:
    """Return the lines of a TopoJSON file as longitudes and latitudes."""
    (sx, sy), (tx, ty) = topology["transform"]["scale"], topology["transform"]["translate"]
    found = []
    for arc in topology["arcs"]:
        x = y = 0
        line = []
        for dx, dy in arc:
            x, y = x + dx, y + dy
            line.append((x * sx + tx, y * sy + ty))
        found.append(line)
    return found


def rings_of(geometry: dict, arcs: list[list[Point]]) -> Iterator[list[Point]]:
    polygons = geometry["arcs"] if geometry["type"] == "MultiPolygon" else [geometry["arcs"]]
    for polygon in polygons:
        for ring in polygon:
            points: list[Point] = []
            for number in ring:
                line = arcs[number] if number >= 0 else arcs[~number][::-1]
                points += line if not points else line[1:]
            yield from cut(points)


def cut(points: list[Point]) -> Iterator[list[Point]]:
    """Split a ring where it crosses the date line, which would otherwise be a line across the map."""
    piece = [points[0]]
    for before, here in pairwise(points):
        if abs(here[0] - before[0]) > 180:
            yield piece
            piece = []
        piece.append(here)
    yield piece


def path_of(ring: list[Point]) -> str:
    """Return a ring as an SVG path of whole, relative pixels."""
    pixels = [pixel(point) for point in ring]
    (x, y), rest = pixels[0], pixels[1:]
    text = f"M{x} {y}"
    steps = []
    for px, py in rest:
        if (px, py) != (x, y):
            steps.append(f"{px - x} {py - y}")
            x, y = px, py
    return f"{text}l{' '.join(steps)}z".replace(" -", "-") if len(steps) > 1 else ""


def main(source: Path) -> None:
    topology = json.loads(source.read_text())
    arcs = arcs_of(topology)
    countries: dict[str, str] = {}
    others = ""
    for geometry in topology["objects"]["countries"]["geometries"]:
        number = geometry.get("id", "")
        if number in LEFT_OUT:
            continue
        path = "".join(map(path_of, rings_of(geometry, arcs)))
        found = pycountry.countries.get(numeric=number) if number else None
        if found:
            countries[found.alpha_2] = path
        else:  # without an ISO code
            others += path
    world = {
        "source": "Natural Earth 1:110m, public domain; world-atlas 2.0.2, ISC",
        "width": WIDTH,
        "height": HEIGHT,
        "countries": dict(sorted(countries.items())),
        "others": others,
    }
    TARGET.write_text(json.dumps(world, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
