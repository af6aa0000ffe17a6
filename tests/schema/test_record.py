"""Records: all faults with their paths, what becomes of the rest of an object, and the form that a row takes."""

import pytest

from muniment.schema.kinds import ANSWER, CHANGE, CONTRACT, DATE, MONTH, Boolean, Integer, Items, Text
from muniment.schema.record import Field, Record, change_of
from muniment.schema.validation import MAX_FAULTS, Fault, Validation

PLACE = Record(
    "Place",
    (Field("city", Text(9), "City", null=True), Field("zip", Text(9), "Postal code", null=True)),
    others="refuse",
    whole=True,
)
LINKS = Record(
    "",
    (Field("mail", Text(9), "Mail", null=True), Field("tube", Text(9), "Tube", null=True)),
    others="refuse",
    whole=True,
    partial=True,
)
TERMS = Record("", (Field("method", Text(9), "Method"), Field("years", Integer(), "Years")), partial=True)
SHIP = Record(
    "Ship",
    (
        Field("id", Text(9), "Id", column="slug", required=True, editable=False),
        Field("name", Text(9, strip=True), "Name", "What it is called.", required=True),
        Field("crew", Integer(9), "Crew"),
        Field("flag", Text(9), "Flag", column=""),
        Field("places", Items(PLACE, 2), "Places", null=True),
        Field("links", LINKS, "Links", null=True),
        Field("terms", TERMS, "Terms", clearable=False),
        Field("builtOn", DATE, "Built", column="built_on", shown=False, editable=False),
        Field("built", MONTH, "Built", column="built_on", editable=False, unless="builtOn"),
        Field("afloat", Boolean(), "Afloat", column="", imported=False, editable=False, promised=True),
    ),
    limits_on_import="warn",
    table=True,
)
SHIP_CHANGE = change_of("ShipChange", SHIP)


def imported(value, record=SHIP):
    validation = Validation(change=False)
    return validation.read(record, value), validation


def changed(value, record=SHIP_CHANGE):
    validation = Validation(change=True)
    return validation.read(record, value), validation


def test_every_fault_is_reported_with_its_path():
    _, validation = imported(
        {
            "name": " ",
            "crew": "many",
            "flag": 5,
            "places": [{"city": 1, "street": "x"}, 7, {"zip": []}],
            "links": {"radio": "x"},
            "terms": {"years": -1},
            "built": "soon",
        }
    )
    assert validation.faults == [
        Fault("id", "is missing"),
        Fault("name", "must not be empty"),
        Fault("crew", "must be a whole number from 0 to 9, not 'many'"),
        Fault("flag", "must be text, not a number"),
        Fault("places[0].city", "must be text, not a number"),
        Fault("places[0].street", "is not one of city, zip"),
        Fault("places[1]", "must be an object, not a number"),
        Fault("places[2].zip", "must be text, not a list"),
        Fault("links.radio", "is not one of mail, tube"),
        Fault("terms.years", "must be a whole number from 0 to 2,147,483,647, not -1"),
        Fault("built", "must be a month and year such as March 2024, not 'soon'"),
    ]


def test_a_value_that_is_not_an_object_is_refused():
    assert imported([])[1].faults == [Fault("", "must be an object, not a list")]


def test_a_hundred_thousand_faults_are_reported_by_the_first_fifty():
    assert len(changed({f"x{n}": 1 for n in range(100_000)})[1].faults) == MAX_FAULTS
    _, validation = imported({"id": "a", "name": "A", "places": [{"city": "x" * 10}] * 1_000})
    assert (len(validation.faults), len(validation.warnings)) == (0, MAX_FAULTS)


def test_a_broken_limit_warns_on_import_and_refuses_a_change():
    long = {"name": "x" * 10, "places": [{"city": "y" * 10}] * 3}
    paths = ["name", "places", "places[0].city", "places[1].city", "places[2].city"]
    found, validation = imported({"id": "a", **long})
    assert (found["name"], validation.faults) == ("x" * 10, [])
    assert sorted(fault.field for fault in validation.warnings) == paths
    assert sorted(fault.field for fault in changed(long)[1].faults) == paths


def test_a_limit_refuses_an_import_where_the_record_says_nothing():
    assert imported({"city": "y" * 10}, PLACE)[1].faults == [Fault("city", "has 10 characters; at most 9 are allowed")]


def test_the_warning_ends_with_the_record_that_allows_it():
    fleet = Record("", (Field("ship", SHIP, "Ship"), Field("port", Text(3), "Port")))
    _, validation = imported({"ship": {"id": "a", "name": "x" * 10}, "port": "long"}, fleet)
    assert [fault.field for fault in validation.warnings] == ["ship.name"]
    assert [fault.field for fault in validation.faults] == ["port"]


@pytest.mark.parametrize("name", ["id", "built", "builtOn", "afloat", "owner"])
def test_a_change_gives_editable_fields_alone(name):
    assert changed({"name": "B", name: "x"})[1].faults == [Fault(name, "is not an editable field")]


def test_a_change_keeps_what_is_absent_and_clears_what_is_null():
    found, validation = changed({"crew": None, "places": None, "links": {"mail": "", "tube": "t"}})
    assert validation.faults == []
    assert found == {"crew": None, "places": None, "links": {"mail": None, "tube": "t"}}


def test_a_change_cannot_clear_what_must_be_there():
    assert changed({"name": None, "terms": None})[1].faults == [
        Fault("name", "is missing"),
        Fault("terms", "cannot be cleared"),
    ]


def test_an_open_object_that_a_change_merges_keeps_other_members_and_cleared_ones():
    found, _ = changed({"terms": {"years": None, "bonus": True}})
    assert found["terms"] == {"years": None, "bonus": True}
    assert imported({"id": "a", "name": "A", "terms": {"years": None, "bonus": None}})[0]["terms"] == {"bonus": None}


def test_a_closed_object_holds_every_member_and_without_any_is_nothing():
    found, _ = imported({"id": "a", "name": "A", "places": [{"city": "Port"}, {}, {"zip": ""}], "links": {"mail": ""}})
    assert found["places"] == [{"city": "Port", "zip": None}]
    assert "links" not in found


def test_the_text_of_a_change_loses_white_space_and_that_of_an_import_does_not():
    assert changed({"name": " A "})[0] == {"name": "A"}
    assert imported({"id": "a", "name": " A "})[0]["name"] == " A "


def test_members_of_a_row_that_are_not_declared_are_kept_ignored_or_refused():
    value = {"a": "x", "z": 1}
    fields = (Field("a", Text(), "A"),)
    assert imported(value, Record("", fields))[0] == {"a": "x", "z": 1}
    assert imported(value, Record("", fields, others="ignore"))[0] == {"a": "x"}
    assert imported(value, Record("", fields, others="refuse"))[1].faults == [Fault("z", "is not one of a")]
    lenient = Record("", fields, others="refuse", others_on_import="ignore")
    assert imported(value, lenient)[0] == {"a": "x"}
    assert changed(value, lenient)[1].faults != []


def test_a_row_has_every_column_and_its_other_members_in_order():
    found, _ = imported({"id": "a", "name": "A", "zeta": None, "flag": "blue", "alpha": 1, "places": [], "afloat": 3})
    assert SHIP.columns(found) == {
        "slug": "a",
        "name": "A",
        "crew": None,
        "places": None,
        "links": None,
        "terms": None,
        "built_on": None,
        "extra": {"alpha": 1, "flag": "blue", "zeta": None},
    }
    assert list(SHIP.columns(found)["extra"]) == ["alpha", "flag", "zeta"]


def test_a_field_is_read_only_where_the_other_form_of_it_is_absent():
    day = imported({"id": "a", "name": "A", "builtOn": "2024-03-15", "built": "nonsense"})
    assert day[1].faults == []
    assert SHIP.columns(day[0])["built_on"].day == 15
    month = imported({"id": "a", "name": "A", "builtOn": "", "built": "March 2024"})
    assert SHIP.columns(month[0])["built_on"].day == 1


def test_a_row_is_shown_in_the_order_of_the_fields_with_null_only_where_it_is_promised():
    row = {"slug": "a", "name": "A", "crew": 0, "places": None, "links": None, "terms": None, "built_on": None}
    shown = SHIP.published({**row, "extra": {"zeta": 1, "flag": "blue"}}, {"afloat": True})
    assert list(shown.items()) == [
        *(("id", "a"), ("name", "A"), ("crew", 0), ("places", None), ("links", None), ("afloat", True)),
        *(("flag", "blue"), ("zeta", 1)),
    ]


def test_a_rule_about_several_members_reports_as_any_other():
    def check(found, path, validation):
        if found.get("a") == found.get("b"):
            validation.refuse((*path, "b"), "must differ from a")

    record = Record("", (Field("a", Text(), "A"), Field("b", Text(), "B")), check=check)
    fleet = Record("", (Field("pairs", Items(record), "Pairs"),))
    assert imported({"pairs": [{"a": "1", "b": "2"}, {"a": "1", "b": "1"}]}, fleet)[1].faults == [
        Fault("pairs[1].b", "must differ from a")
    ]


def test_the_schema_of_an_answer_promises_what_is_always_there():
    schema = SHIP.schema(ANSWER)
    assert schema["required"] == ["id", "name", "afloat"]
    assert list(schema["properties"]) == ["id", "name", "crew", "flag", "places", "links", "terms", "built", "afloat"]
    assert schema["properties"]["links"]["anyOf"][0]["required"] == ["mail", "tube"]
    assert schema["properties"]["links"]["anyOf"][1] == {"type": "null"}
    assert schema["properties"]["crew"] == {"type": "integer", "minimum": 0}


def test_the_schema_of_a_change_asks_for_nothing_and_takes_nothing_else():
    schema = SHIP_CHANGE.schema(CHANGE)
    assert "required" not in schema
    assert schema["additionalProperties"] is False
    assert list(schema["properties"]) == ["name", "crew", "flag", "places", "links", "terms"]
    assert schema["properties"]["name"] == {"type": "string", "maxLength": 9, "description": "What it is called."}
    assert schema["properties"]["crew"]["type"] == ["integer", "null"]
    assert schema["properties"]["places"]["anyOf"][0]["items"]["additionalProperties"] is False
    assert schema["properties"]["terms"]["type"] == "object"
    assert "additionalProperties" not in schema["properties"]["terms"]


def test_the_reference_points_at_records_by_name_and_writes_the_others_in_place():
    schema = SHIP.definition(CONTRACT)
    assert schema["properties"]["places"]["anyOf"][0]["items"] == {"$ref": "#/components/schemas/Place"}
    assert schema["properties"]["links"]["anyOf"][0]["properties"]["mail"] == {"type": ["string", "null"]}
    assert schema["additionalProperties"] is True
