"""Charts say what they show: in a picture, in a description and in a table of their numbers."""

import re
import xml.etree.ElementTree as ET

import pytest

from muniment.web.presenters import charts
from muniment.web.presenters.charts import ChartSlice

POOLS = [ChartSlice("Members", 60), ChartSlice("Towns", 30), ChartSlice("Reserve", 10)]


@pytest.mark.parametrize("draw", [charts.donut, charts.stacked_bar, charts.sparkline])
def test_every_chart_is_well_formed_and_carries_title_description_and_numbers(draw):
    figure = ET.fromstring(draw("Pools", "Members lead.", POOLS))
    svg = figure.find("svg")
    named = svg.get("aria-labelledby").split()
    assert [svg.find("title").get("id"), svg.find("desc").get("id")] == named
    assert (svg.find("title").text, svg.find("desc").text, svg.get("role")) == ("Pools", "Members lead.", "img")
    rows = ["".join(row.itertext()) for row in figure.find("table").iter("tr")][1:]
    assert [row[:4] for row in rows] == ["Memb", "Town", "Rese"]
    assert "style" not in ET.tostring(figure, encoding="unicode")


@pytest.mark.parametrize("draw", [charts.donut, charts.bar, charts.stacked_bar])
def test_user_input_never_becomes_markup(draw):
    drawn = draw("<b>title</b>", "<script>", [ChartSlice("</text><script>alert(1)</script>", 5), ChartSlice('"&', 5)])
    ET.fromstring(drawn)
    assert "<script" not in drawn
    assert "&lt;script&gt;" in drawn


@pytest.mark.parametrize("draw", [charts.donut, charts.bar, charts.stacked_bar, charts.sparkline])
@pytest.mark.parametrize("slices", [[], [ChartSlice("nothing", 0)]])
def test_nothing_to_show_draws_nothing(draw, slices):
    assert draw("Empty", "", slices) == ""


def test_a_bar_is_as_long_as_its_share_of_the_largest():
    drawn = charts.bar("Votes", "", [ChartSlice("a", 4), ChartSlice("b", 1)])
    assert re.findall(r'class="tint0"[^>]* width="([\d.]+)"', drawn) == ["100.00", "25.00"]


@pytest.mark.parametrize(("largest", "bars"), [(20, 3), (21, 0)])
def test_an_amount_that_would_flatten_all_others_is_shown_without_bars(largest, bars):
    drawn = charts.bar("Treasuries", "", [ChartSlice("a", largest), ChartSlice("b", 1), ChartSlice("c", 1)])
    assert drawn.count('class="tint0"') == bars
    assert [label in drawn for label in ("<bdi>a<", "<bdi>b<", "<bdi>c<")] == [True] * 3


def test_each_bar_has_its_name_and_number_as_text():
    figure = ET.fromstring(charts.bar("Pools", "Members lead.", POOLS))
    assert (figure.find("figcaption").text, figure.find("table/caption").text) == ("Members lead.", "Pools")
    rows = figure.findall("table/tbody/tr")
    assert ["".join(row.itertext()) for row in rows] == ["Members60", "", "Towns30", "", "Reserve10", ""]
    assert [row.get("aria-hidden") for row in rows] == [None, "true"] * 3
    assert "style" not in ET.tostring(figure, encoding="unicode")


def test_a_share_that_is_a_judgement_has_the_tone_of_its_word_and_not_of_its_place():
    drawn = charts.stacked_bar(
        "Criteria", "", [ChartSlice("not met", 1, tone="bad"), ChartSlice("unknown", 1, rest=True)]
    )
    assert re.findall(r'class="(?:key )?(tint[^"]*)"', drawn) == ["tint-bad", "tint5"] * 2


def test_stacked_parts_fill_the_bar():
    drawn = charts.stacked_bar("Votes", "", [ChartSlice("for", 3), ChartSlice("against", 1)])
    assert re.findall(r'x="([\d.]+)"', drawn) == ["0.000", "75.000"]


def test_the_scale_of_a_sparkline_starts_at_zero():
    drawn = charts.sparkline("Balance", "", [ChartSlice("before", 50), ChartSlice("after", 100)])
    assert 'class="line" points="0.00,15.00 100.00,2.00"' in drawn


def test_many_small_shares_fold_into_one_that_says_how_many():
    folded = charts.folded([ChartSlice(str(n), n) for n in range(1, 21)])
    assert [slice_.label for slice_ in folded] == ["20", "19", "18", "17", "16", "15 others"]
    assert sum(slice_.value for slice_ in folded) == 210


def test_a_whole_ring_is_drawn_for_a_single_holder():
    drawn = charts.donut("Holders", "", [ChartSlice("only", 100)])
    assert drawn.count("<path") == 1
    assert "100%" in drawn


def test_of_many_shares_those_that_nobody_would_see_are_among_the_others():
    mixed = charts.folded([ChartSlice("large", 40), *(ChartSlice(str(n), 0.5) for n in range(20))])
    assert [(slice_.label, slice_.value) for slice_ in mixed] == [("large", 40), ("20 others", 10)]
    alike = charts.folded([ChartSlice(str(n), 0.5) for n in range(20)])
    assert [(slice_.label, slice_.value) for slice_ in alike] == [("20 with less than 1% each", 10)]


def test_the_number_in_a_ring_says_what_it_counts():
    drawn = charts.shares_of_whole("Holders", "", [ChartSlice("only", 100)], centre="1", counted="holder")
    assert re.findall(r'<text class="centre[^>]*>([^<]*)<', drawn) == ["1", "holder"]
