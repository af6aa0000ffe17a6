"""It shows: a claimed person is mailed, declines, and within a second no public answer has the title any more."""

import gzip
from email import message_from_bytes, policy

from services.mail import text_of
from services.mcp import modern
from services.owner import COMPANY, EMAIL, owned_instance
from services.ports import SEEN_WITHIN_S, wait_until
from services.product import run
from services.visitor import Visitor

TITLE = "Convicted fraudster"
PASSWORD = "four harbours, one tide"
ADA, STRANGER = "ada@moss.example", "stranger@harbour.example"


def call(product, token, name, **arguments):
    headers, body = modern("tools/call", {"name": name, "arguments": arguments})
    given = {key: value for key, value in headers if key != "host"} | {"Authorization": f"Bearer {token}"}
    answer = product.request("POST", "/api/manage/mcp", given, body)
    assert answer.status == 200, answer
    return answer.json()["result"]["structuredContent"]


def public_tool(product, name, **arguments):
    headers, body = modern("tools/call", {"name": name, "arguments": arguments})
    answer = product.request("POST", "/api/mcp", {key: value for key, value in headers if key != "host"}, body)
    assert answer.status == 200, answer
    return answer.body.decode()


def sign_in(product, email):
    visitor = Visitor(product.url, {})
    visitor.post("/accounts/login/", login=email, password=PASSWORD)
    return visitor


def exported(product):
    """Return the content of all export files that are served."""
    files = product.data_of("/api/v1/exports")
    return "".join(
        gzip.decompress(product.get(file["url"][file["url"].index("/exports/") :]).body).decode("latin-1")
        for file in files
    )


def answers(product):
    """Return every public answer that may say what Ada does at the company."""
    paths = [
        f"/api/v1/companies/{COMPANY}",
        f"/api/v1/companies?q={COMPANY}",
        "/api/v1/people/ada-moss",
        "/api/v1/people?q=fraudster",
        "/api/v1/people?q=ada",
        f"/companies/{COMPANY}",
        f"/companies/{COMPANY}.json",
        "/people/ada-moss",
        "/people/ada-moss.json",
        "/people?q=fraudster",
        "/api/v1/changes?after=0",
    ]
    found = {path: product.get(path).body.decode() for path in paths}
    found["get_company"] = public_tool(product, "get_company", slug=COMPANY)
    found["get_person"] = public_tool(product, "get_person", slug="ada-moss")
    found["list_people"] = public_tool(product, "list_people", q="fraudster")
    found["exports"] = exported(product)
    return found


def test_a_declined_title_is_gone_from_every_public_answer_within_a_second(tmp_path):
    with owned_instance(tmp_path, exports_interval_s="1") as (product, _):
        data = tmp_path / "data"
        tokens = {}
        for email in (ADA, STRANGER):
            run("user", "create", email, "--password-stdin", data=data, stdin=f"{PASSWORD}\n")
        for email in (EMAIL, ADA, STRANGER):
            made = run("user", "token", email, "--name", "test", data=data)
            tokens[email] = made.stdout.strip()
        with sign_in(product, ADA) as ada:
            ada.post("/manage/profile", name="Ada Moss", bio="Sails.")
            ada.post("/manage/profile/publish")
        wait_until(lambda: product.get("/api/v1/people/ada-moss").status == 200, within_s=60, what="the profile")

        change = {"positions": {"add": [{"title": TITLE, "person": {"slug": "ada-moss"}}]}}
        done = call(product, tokens[EMAIL], "update_my_company", slug=COMPANY, changes=change)["data"]
        assert done["awaitingPeople"] == ["ada-moss"]
        wait_until(lambda: TITLE in product.get(f"/api/v1/companies/{COMPANY}").body.decode(), within_s=60, what="it")
        row = product.data_of(f"/api/v1/companies/{COMPANY}")["positions"][-1]
        assert row["person"] == {"name": "Ada Moss"}
        assert product.data_of("/api/v1/people/ada-moss")["positions"] == []
        wait_until(lambda: TITLE in exported(product), within_s=30, what="the export with the title")
        letters = [message_from_bytes(each.read_bytes(), policy=policy.default) for each in data.glob("mail/*.eml")]
        (letter,) = [each for each in letters if "confirm your position" in each["Subject"]]
        assert letter["To"] == ADA
        assert TITLE in text_of(letter)

        (held,) = call(product, tokens[ADA], "get_my_profile")["data"]["positions"]
        refused = call(product, tokens[STRANGER], "update_my_profile", positions={"decline": [held["id"]]})
        assert "error" in refused
        call(product, tokens[ADA], "update_my_profile", positions={"decline": [held["id"]]})
        wait_until(
            lambda: not any(TITLE in text for text in answers(product).values()),
            within_s=SEEN_WITHIN_S,
            what="the title gone from every answer",
        )
        again = call(product, tokens[EMAIL], "update_my_company", slug=COMPANY, changes=change)
        assert "who declined a position here" in again["error"]["message"]
