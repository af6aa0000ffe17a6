"""Lists as CSV: the whole result, in the order and with the filters of the list."""

import asyncio
import csv
import io
from concurrent.futures import Executor, Future
from contextlib import suppress

import pytest

from make.published import company, person
from muniment.api import csv_files, routes
from muniment.kernel import csv_text, fairness
from muniment.kernel.csv_text import CsvText
from muniment.kernel.problems import TooMany, Unavailable

BODIES = b"\xef\xbb\xbf"


def rows_of(answer):
    return list(csv.DictReader(io.StringIO(answer.body.decode("utf-8-sig"))))


def test_a_list_is_one_csv_with_its_filters_in_its_order(filled):
    found = filled.ask("/api/v1/companies?format=csv&status=active&sort=name&pageSize=5&page=2")
    assert found.headers["content-type"] == "text/csv; charset=utf-8"
    assert found.headers["content-disposition"] == 'attachment; filename="companies.csv"'
    assert found.headers["content-length"] == str(len(found.body))
    assert "x-muniment-truncated" not in found.headers
    pages = [filled.ask(f"/api/v1/companies?status=active&sort=name&page={page}").json["data"] for page in (1, 2)]
    assert [row["id"] for row in rows_of(found)] == [item["id"] for page in pages for item in page]


@pytest.mark.parametrize("target", ["companies", "companies?q=company&hasToken=true", "people", "frameworks"])
def test_a_csv_has_what_the_list_counts(filled, target):
    found = rows_of(filled.ask(f"/api/v1/{target}", accept="text/csv, */*;q=0.1"))
    listed = filled.ask(f"/api/v1/{target}").json
    assert len(found) == listed.get("pagination", {}).get("total", len(listed["data"]))
    key = {"p": "slug", "f": "frameworkId"}.get(target[0], "id")
    assert [row[key] for row in found][:25] == [item[key] for item in listed["data"]]


def test_companies_have_their_contacts_and_people_their_positions(rest):
    address = {"id": "a1", "address_1": "Quay 4", "city": "Bristol", "zip": "BS1", "country": "GB"}
    rest.publish(
        company(1, socials={"email": "a@quay.example", "phone_number": "+44 1", "twitter": "@quay"}, address=[address])
    )
    rest.publish(person(1, positions=[("Steward", "quay-trust"), ("", "river")]))
    (row,) = rows_of(rest.ask("/api/v1/companies?format=csv"))
    assert (row["socials.email"], row["address.city"], row["address.country"]) == ("a@quay.example", "Bristol", "GB")
    assert (row["socials.phone_number"], row["socials.twitter"]) == ("'+44 1", "'@quay")
    (row,) = rows_of(rest.ask("/api/v1/people?format=csv"))
    assert row["positions"] == "Steward, Quay trust; River"


def test_only_the_wanted_columns_are_written(filled):
    found = filled.ask("/api/v1/companies?format=csv&fields=treasury,address")
    assert found.body.splitlines()[0] == (
        b"id,name,treasury,treasuryNote,address.address_1,address.address_2,address.city,address.state,address.zip,"
        b"address.country"
    )


def test_a_figure_never_travels_without_its_qualifier(rest):
    rest.publish(company(1, treasury="$5", treasuryNote="sum of grants received"))
    (item,) = rest.ask("/api/v1/companies?fields=treasury").json["data"]
    assert item["treasuryNote"] == "sum of grants received"


def test_a_csv_for_excel_has_a_mark_and_the_delimiter_of_its_language(filled):
    found = filled.ask("/api/v1/companies/company-7/cap-table?format=csv&bom=1&delimiter=semicolon")
    assert found.body.startswith(BODIES + b"address;name;tokens;percentage\r\n0x0;;;\r\n")
    assert len(found.body.splitlines()) == 31
    assert found.headers["content-disposition"] == 'attachment; filename="company-7-cap-table.csv"'


def test_what_is_asked_wrongly_is_an_error_of_the_contract(filled):
    for target in ("companies?format=csv&sort=nothing", "companies/unknown/cap-table?format=csv", "people?format=xml"):
        assert filled.ask(f"/api/v1/{target}").status in {400, 404}
    assert filled.ask("/api/v1/companies/company-7", accept="text/csv").headers["content-type"] == "application/json"
    # The parameter counts before the header.
    assert filled.ask("/api/v1/people?format=json", accept="text/csv").json["data"]


def test_the_same_csv_is_not_sent_again(rest):
    rest.publish(company(1))
    found = rest.ask("/api/v1/companies?format=csv")
    assert rest.ask("/api/v1/companies?format=csv", if_none_match=found.headers["etag"]).status == 304
    assert found.headers["vary"] == rest.ask("/api/v1/companies").headers["vary"] == "Accept-Encoding, Accept"
    rest.publish(company(2))
    assert rest.ask("/api/v1/companies?format=csv", if_none_match=found.headers["etag"]).status == 200


def test_a_csv_says_what_cut_it(filled, monkeypatch):
    monkeypatch.setattr(csv_text, "MAX_ROWS", 7)
    found = filled.ask("/api/v1/companies?format=csv")
    assert (len(rows_of(found)), found.headers["x-muniment-truncated"]) == (7, "by=rows; rows=7")
    monkeypatch.setattr(routes, "ROWS_OF_A_STEP", 2)
    monkeypatch.setattr(csv_files, "MAX_LIST_BYTES", 10)
    cut = filled.ask("/api/v1/companies?format=csv")
    assert (len(rows_of(cut)), cut.headers["x-muniment-truncated"]) == (2, "by=bytes; rows=2")


class AtOnce(Executor):
    """Runs in the thread that asks, which is that of the publisher."""

    def submit(self, work, /, *given, **named):
        done = Future()
        done.set_result(work(*given, **named))
        return done


def test_what_is_unlisted_while_rows_are_read_is_left_out_and_that_file_is_not_kept(rest, monkeypatch):
    rest.publish(*(company(number) for number in range(1, 4)))
    monkeypatch.setattr(routes, "ROWS_OF_A_STEP", 1)
    monkeypatch.setattr(rest.reader, "pool", AtOnce())
    read = rest.reader.sheet_rows

    def unlisting(*asked):
        rows = read(*asked)
        if rows:
            rest.unlist("company", "company-1")
        return rows

    monkeypatch.setattr(rest.reader, "sheet_rows", unlisting)
    found = rest.ask("/api/v1/companies?format=csv")
    assert [row["id"] for row in rows_of(found)] == ["company-3", "company-2"]
    monkeypatch.undo()
    assert rest.ask("/api/v1/companies?format=csv", if_none_match=found.headers["etag"]).status == 200


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r"])
def test_a_text_is_no_formula_and_a_number_stays_one(first):
    text = CsvText()
    text.write([f"{first}1+1", -5, -0.5, None, True, [f"{first}x", "y"], b"\xff"])
    (row,) = csv.reader(io.StringIO(text.take().decode(), newline=""))
    assert row == [f"'{first}1+1", "-5", "-0.5", "", "true", f"'{first}x; y", "ff"]


def test_a_csv_is_charged_to_its_address(filled, monkeypatch):
    limits = fairness.use(fairness.Fairness(rate=60, burst=60))
    try:
        filled.ask("/api/v1/companies?format=csv")
        assert limits.statements.peek("").remaining < limits.statements.burst
        limits.statements.charge("", 100_000)
        refused = filled.ask("/api/v1/companies?format=csv")
        assert (refused.status, refused.headers["retry-after"].isdigit()) == (429, True)
    finally:
        fairness.use(fairness.Fairness())


# ---------------------------------------------------------------------- the room for files


class Reader:
    """A client that takes as many pieces of a file as it is told, and then no more."""

    def __init__(self, pieces):
        self._pieces = pieces
        self.taken = 0
        self.is_whole = False

    async def __call__(self, message):
        if message["type"] == "http.response.body":
            if self.taken >= self._pieces:
                await asyncio.Event().wait()
            self.taken += 1
            self.is_whole = not message.get("more_body", False)


def sending(files, client, reader, size_bytes=100):
    async def send():
        with files.open(client) as file:
            file.write(b"x" * size_bytes)
            scope = {"method": "GET", "state": {"client": client}}
            answer = csv_files.Answer(b"", b"tag", content_type=csv_files.CSV)
            await files.send(scope, reader, answer, file, "some.csv", csv_files.Written(1, ()))

    return asyncio.ensure_future(send())


async def _settled():
    for _ in range(5):
        await asyncio.sleep(0)


def test_slow_clients_make_room_for_the_next_one_the_slowest_first(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_files, "MAX_UNSENT_BYTES", 300)
    monkeypatch.setattr(csv_files, "CHUNK_BYTES", 10)
    files = csv_files.CsvFiles(tmp_path)

    async def scenario():
        readers = [Reader(pieces) for pieces in (5, 0, 3)]
        tasks = [sending(files, f"client-{number}", reader) for number, reader in enumerate(readers)]
        await _settled()
        with pytest.raises(Unavailable, match="Too many CSVs"):  # how fast they read is not known yet
            files.open("another")
        monkeypatch.setattr(csv_files, "GRACE_S", 0.0)
        another = Reader(20)
        last = sending(files, "another", another)
        await last
        assert another.is_whole
        await _settled()
        assert [task.done() for task in tasks] == [False, True, False]
        assert files.unsent_bytes == 200
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        assert files.unsent_bytes == 0

    asyncio.run(scenario())


def test_one_address_cannot_fill_the_room(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_files, "MAX_UNSENT_BYTES_OF_CALLER", 100)
    files = csv_files.CsvFiles(tmp_path)

    async def scenario():
        task = sending(files, "one", Reader(0))
        await _settled()
        with pytest.raises(TooMany, match="Earlier CSVs"):
            files.open("one")
        files.open("two").close()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(scenario())


def test_few_lists_are_written_at_once(rest, monkeypatch):
    rest.publish(company(1))
    for name, status in (("MAX_WRITING_OF_CALLER", 429), ("MAX_WRITING", 503)):
        with monkeypatch.context() as patched:
            patched.setattr(csv_files, name, 0)
            assert rest.ask("/api/v1/companies?format=csv").status == status
