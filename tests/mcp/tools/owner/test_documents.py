"""The document tools: what they answer, what they refuse, and that strangers reach nothing."""

from base64 import b64encode

import jsonschema
import pytest

from make import files
from make import registry as make
from make.accounts import account
from make.documents import send, token_of, uploaded
from muniment.accounts import tokens
from muniment.documents import operations, uploads
from muniment.documents.models import Document, DocumentState, Page, TextState
from muniment.documents.records import Upload
from muniment.kernel.actor import SCOPES
from muniment.kernel.phrases.phrase import Phrase
from muniment.mcp.tools.owner.documents import MAX_READ, READ
from services.manage import BASE, manage
from services.mcp import modern

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("tools.manage.documents")]


class Client:
    """One account's own server."""

    def __init__(self, server, email, permitted=SCOPES):
        self.account = account(email)
        self.actor = self.account.actor("web")
        self.server = server
        self.token = tokens.create_token(self.actor, "laptop", permitted=permitted).text

    def data(self, name, **arguments):
        return self.server.data(self.token, name, **arguments)

    def error(self, name, **arguments):
        return self.server.error(self.token, name, **arguments)

    def call(self, name, **arguments):
        return self.server.call(self.token, name, **arguments)


@pytest.fixture
def server():
    with manage() as made:
        yield made


@pytest.fixture
def owner(server):
    return Client(server, "owner@harbour.example")


@pytest.fixture
def slug(owner):
    return make.draft(owner.actor).slug


def sent(found, content):
    """Send *content* to the link that a tool gave."""
    send(Upload(found["uploadId"], found["url"], "", "", len(content), None), content)


def test_a_file_goes_the_three_steps_and_is_listed_and_deleted(owner, slug):
    content = files.pdf()
    found = owner.data(
        "create_document_upload", companySlug=slug, filename="a.pdf", sizeBytes=len(content), contentType=files.PDF
    )
    assert set(found) == {"uploadId", "url", "method", "headers", "command", "maxBytes", "expiresAt"}
    assert found["url"].startswith(f"{BASE}/uploads/")
    assert found["url"] in found["command"]
    assert (found["method"], found["maxBytes"]) == ("PUT", len(content))
    early = owner.error("complete_document_upload", uploadId=found["uploadId"])
    assert "Run the command" in early["hint"]
    sent(found, content)
    document = owner.data("complete_document_upload", uploadId=found["uploadId"])
    assert owner.data("complete_document_upload", uploadId=found["uploadId"]) == document
    assert (document["state"], document["companySlug"], document["sizeBytes"]) == ("ready", slug, len(content))
    listed = owner.call("list_my_documents", companySlug=slug)
    assert listed["data"] == [document]
    assert listed["quota"] == {"usedBytes": len(content), "reservedBytes": 0, "limitBytes": 500 << 20}
    assert listed["nextPage"] is None
    deleted = owner.data("delete_document", documentId=document["documentId"])
    assert set(deleted) == {"documentId", "deletedAt", "restorableUntil"}
    assert owner.data("delete_document", documentId=document["documentId"]) == deleted
    assert owner.data("list_my_documents") == []


@pytest.mark.requirement("documents.small")
def test_a_small_file_passes_at_8192_bytes_and_at_8193_the_other_tool_is_named(owner, slug):
    for form in ("text", "contentBase64"):

        def given(size, form=form):
            return "x" * size if form == "text" else b64encode(b"x" * size).decode()

        kept = owner.data("upload_document", companySlug=slug, filename="a.txt", **{form: given(8192)})
        assert (kept["sizeBytes"], kept["contentType"]) == (8192, "text/plain")
        refused = owner.error("upload_document", companySlug=slug, filename="a.txt", **{form: given(8193)})
        assert "create_document_upload" in refused["hint"]


def test_text_is_counted_in_bytes(owner, slug):
    refused = owner.error("upload_document", companySlug=slug, filename="a.txt", text="語" * 3000)
    assert "9,000 bytes" in refused["message"]


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "Send the content either"),
        ({"text": "a", "contentBase64": "YQ=="}, "Send the content either"),
        ({"contentBase64": "Zm9v!"}, "not base64"),
        ({"text": ""}, "empty"),
        ({"text": "a", "filename": "../../x"}, "slash"),
        ({"text": "a", "filename": "a\r\nb.txt"}, "invisible"),
        ({"text": "<html>", "filename": "a.pdf"}, "a web page"),
        ({"text": "a", "contentType": "text/html"}, "not accepted"),
    ],
)
def test_a_refused_file_has_a_reason_and_leaves_nothing(owner, slug, given, said):
    error = owner.error("upload_document", **{"companySlug": slug, "filename": "a.txt", **given})
    assert said in error["message"]
    assert error["hint"]
    assert not Document.objects.exclude(state=DocumentState.REJECTED).exists()


def test_a_stranger_gets_the_same_answer_as_for_something_missing(server, owner, slug):
    stranger = Client(server, "stranger@harbour.example")
    make.draft(stranger.actor)
    kept = owner.data("upload_document", companySlug=slug, filename="a.txt", text="a")
    begun = owner.data("create_document_upload", companySlug=slug, filename="a.txt", sizeBytes=9)
    calls = [
        ("list_my_documents", {"companySlug": slug}),
        ("upload_document", {"companySlug": slug, "filename": "a.txt", "text": "a"}),
        ("create_document_upload", {"companySlug": slug, "filename": "a.txt", "sizeBytes": 9}),
        ("complete_document_upload", {"uploadId": begun["uploadId"]}),
        ("complete_document_upload", {"uploadId": kept["documentId"]}),
        ("delete_document", {"documentId": kept["documentId"]}),
    ]
    for name, arguments in calls:
        error = stranger.error(name, **arguments)
        assert error["code"] == "not_found", name
        [value] = [arguments[key] for key in ("companySlug", "uploadId", "documentId") if key in arguments]
        key = next(key for key in ("companySlug", "uploadId", "documentId") if key in arguments)
        other = stranger.error(name, **{**arguments, key: "x" * len(value)})
        assert error["message"].replace(value, "x" * len(value)) == other["message"]
        assert error["hint"] == other["hint"]
    assert stranger.data("list_my_documents") == []


def test_a_document_that_a_report_needs_is_not_deleted(owner, slug):
    from muniment.registry.models import Company

    kept = owner.data("upload_document", companySlug=slug, filename="a.txt", text="a")
    operations.pin("run", Company.objects.get(slug=slug), [kept["documentId"]])
    assert "report" in owner.error("delete_document", documentId=kept["documentId"])["message"]


def test_reading_alone_hides_the_tools_that_write(server):
    reader = Client(server, "reader@harbour.example", ["documents:read"])
    names = [tool["name"] for tool in server.ask(reader.token, modern("tools/list")).result["tools"]]
    assert names == ["list_my_documents", "read_document", "query"]  # what is public needs no scope
    call = modern("tools/call", {"name": "delete_document", "arguments": {"documentId": "x"}})
    assert server.ask(reader.token, call).status == 403


def test_hints_and_answers_are_as_listed(server, owner, slug):
    found = {tool["name"]: tool for tool in server.ask(owner.token, modern("tools/list")).result["tools"]}
    hints = {
        name: "".join(
            letter
            for letter, hint in (("R", "readOnlyHint"), ("D", "destructiveHint"), ("I", "idempotentHint"))
            if found[name]["annotations"][hint]
        )
        for name in found
        if "document" in name
    }
    assert hints == {
        "list_my_documents": "RI",
        "read_document": "RI",
        "upload_document": "",
        "create_document_upload": "",
        "complete_document_upload": "I",
        "delete_document": "DI",
    }
    begun = owner.call("create_document_upload", companySlug=slug, filename="a.txt", sizeBytes=1)
    sent(begun["data"], b"a")
    completed = owner.call("complete_document_upload", uploadId=begun["data"]["uploadId"])
    answers = {
        "create_document_upload": begun,
        "complete_document_upload": completed,
        "upload_document": owner.call("upload_document", companySlug=slug, filename="a.txt", text="a"),
        "list_my_documents": owner.call("list_my_documents"),
        "delete_document": owner.call("delete_document", documentId=completed["data"]["documentId"]),
    }
    for name, answer in answers.items():
        jsonschema.validate(answer, found[name]["outputSchema"])
    assert token_of(Upload("", begun["data"]["url"], "", "", 1, None))


def test_a_deleted_document_is_listed_and_brought_back(owner, slug):
    document = uploaded(owner.actor, slug)
    assert owner.data("delete_document", documentId=document.pk)["restorableUntil"]
    assert owner.data("list_my_documents") == []
    assert [each["documentId"] for each in owner.data("list_my_documents", deleted=True)] == [document.pk]
    for _ in range(2):
        restored = owner.data("delete_document", documentId=document.pk, restore=True)
        assert restored == {"documentId": document.pk, "deletedAt": None, "restorableUntil": None}
    assert [each["documentId"] for each in owner.data("list_my_documents")] == [document.pk]


def test_the_text_of_a_document_is_read_page_by_page(server, owner, slug):
    document = uploaded(owner.actor, slug, b"waiting")
    assert "is being extracted" in owner.error("read_document", documentId=document.pk)["message"]
    long = "".join(chr(0x4E00 + number % 5_000) for number in range(MAX_READ + 500))
    Page.objects.bulk_create(
        Page(document=document, number=number, text=text) for number, text in ((1, "One."), (2, ""), (4, long))
    )
    Document.objects.filter(pk=document.pk).update(text_state=TextState.EXTRACTED)
    first = owner.data("read_document", documentId=document.pk, limit=MAX_READ)
    shown = MAX_READ - len("One.")
    assert first["pages"] == [{"page": 1, "text": "One."}, {"page": 2, "text": ""}, {"page": 4, "text": long[:shown]}]
    assert (first["pageCount"], first["nextPage"], first["nextOffset"]) == (4, 4, shown)
    rest = owner.data("read_document", documentId=document.pk, page=4, offset=shown)
    assert rest["pages"] == [{"page": 4, "text": long[shown:]}]
    assert (rest["nextPage"], rest["nextOffset"]) == (None, None)
    lean = owner.data("read_document", documentId=document.pk)
    assert sum(len(each["text"]) for each in lean["pages"]) == READ
    line = owner.data("read_document", documentId=document.pk, limit=3)
    assert (line["pages"], line["nextPage"], line["nextOffset"]) == ([{"page": 1, "text": "One"}], 1, 3)
    assert "limit" in owner.error("read_document", documentId=document.pk, limit=MAX_READ + 1)["message"]
    assert "has 4 pages" in owner.error("read_document", documentId=document.pk, page=5)["message"]
    assert "has 4 characters" in owner.error("read_document", documentId=document.pk, offset=4)["message"]
    stranger = Client(server, "stranger@harbour.example")
    assert stranger.error("read_document", documentId=document.pk)["code"] == "not_found"
    Document.objects.filter(pk=document.pk).update(text_state=TextState.NOT_EXTRACTABLE, text_note="It is encrypted.")
    assert "It is encrypted." in owner.error("read_document", documentId=document.pk)["message"]
    begun = owner.data("create_document_upload", companySlug=slug, filename="a.txt", sizeBytes=1)
    assert "is pending" in owner.error("read_document", documentId=begun["uploadId"])["message"]


def test_a_rejected_document_is_listed_with_the_reason(owner, slug):
    made = uploaded(owner.actor, slug)
    reason = Phrase("The scanner found {name}.", name="a test signature")
    Document.objects.filter(pk=made.pk).update(state=DocumentState.UPLOADED)
    uploads.reject(made, reason)
    (listed,) = owner.data("list_my_documents", companySlug=slug)
    assert (listed["state"], listed["note"]) == ("rejected", "The scanner found a test signature.")
