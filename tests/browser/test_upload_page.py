"""The page of an upload link, which an agent hands to a person without a shell or an account in this browser."""

from base64 import b64encode

import pytest
from playwright.sync_api import expect

from browser.eyes import in_the_dark, violations
from make import files
from services.prepared import new_instance
from services.product import Product
from services.uploads import Owner

pytestmark = [pytest.mark.requirement("web.large-files")]


@pytest.fixture(scope="module")
def owner(tmp_path_factory):
    with Product(new_instance(tmp_path_factory.mktemp("upload") / "data"), log_requests="on") as product:
        product.wait_ready()
        yield Owner(product)


@pytest.fixture
def visitor(browser):
    context = browser.new_context(viewport={"width": 390, "height": 780}, reduced_motion="reduce")
    yield context
    context.close()


@pytest.fixture
def the_file(tmp_path):
    """Return a function that chooses a file of this name: from a folder, because bytes would pass as JSON, twice."""

    def choose(page, name, content):
        path = tmp_path / name
        path.write_bytes(content)
        page.set_input_files("#file", path)

    return choose


def test_a_person_uploads_a_file_from_an_agents_link_by_keyboard_and_by_drop(owner, visitor, the_file):
    content = files.pdf("Accounts", size_bytes=3 << 20)
    link = owner.begin("accounts.pdf", len(content))
    page, faults, addresses = visitor.new_page(), [], []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda line: faults.append(line.text) if "Content Security" in line.text else None)
    page.on("request", lambda request: addresses.append((request.url, request.headers.get("referer", ""))))
    page.goto(link["url"])
    expect(page).to_have_title("Upload accounts.pdf to Harbour Cooperative · Muniment")
    faults += violations(page) + in_the_dark(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.emulate_media(color_scheme="light")

    fault = page.get_by_role("alert")
    for name, wrong, said in (
        ("photo.png", content, "This link accepts these files: .pdf. photo.png is of another kind."),
        ("accounts.pdf", content[:-1], "another file than the announced one"),
        ("accounts.pdf", content + b"x", "too large"),
    ):
        the_file(page, name, wrong)
        page.get_by_role("button", name="Upload").press("Enter")
        expect(fault).to_contain_text(said)

    dropped = page.evaluate_handle(
        """(size) => { const all = new DataTransfer();
        all.items.add(new File([new Uint8Array(size)], "accounts.pdf")); return all }""",
        len(content),
    )
    page.dispatch_event("#upload", "drop", {"dataTransfer": dropped})
    assert page.evaluate("document.querySelector('#file').files[0].size") == len(content)
    expect(page.get_by_role("button", name="Upload")).to_be_focused()

    page.route("**/uploads/*", lambda route: route.abort() if route.request.method == "POST" else route.continue_())
    the_file(page, "accounts.pdf", content)
    page.get_by_role("button", name="Upload").press("Enter")
    expect(fault).to_contain_text("connection was lost")
    page.unroute("**/uploads/*")
    page.get_by_role("button", name="Upload").press("Enter")
    expect(page.get_by_role("heading", name="File uploaded")).to_be_visible(timeout=30_000)
    faults += violations(page)
    assert owner.call("complete_document_upload", uploadId=link["uploadId"])["data"]["state"] == "ready"

    page.reload()
    expect(page.get_by_text("This upload link was used")).to_be_visible()
    assert visitor.cookies() == []
    token = link["url"].rpartition("/")[2]
    assert [referer for _, referer in addresses if token in referer] == []
    assert {url.rpartition("/")[2] for url, _ in addresses if token in url} == {token}
    assert token not in owner.product.log.read_text()
    assert faults == []


def test_without_javascript_the_form_uploads_and_says_what_is_wrong(owner, browser, the_file):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    content = files.pdf("Plan")
    link = owner.begin("plan.pdf", len(content))
    page.goto(link["url"])
    the_file(page, "plan.docx", content)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("alert")).to_contain_text("not plan.docx")
    the_file(page, "plan.pdf", files.pdf("Plan", size_bytes=20 << 20))
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("alert")).to_contain_text("larger than")
    the_file(page, "plan.pdf", content)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", name="File uploaded")).to_be_visible()
    disguised = owner.begin("other.pdf", 1000)
    page.goto(disguised["url"])
    the_file(page, "other.pdf", b"x" * 1000)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("alert")).to_contain_text("was rejected")
    context.close()


def test_a_page_of_a_null_origin_may_send_the_file_to_its_link_alone(owner, visitor):
    content = files.pdf("Frame")
    link = owner.begin("frame.pdf", len(content))
    page = visitor.new_page()
    page.set_content('<iframe sandbox="allow-scripts" srcdoc="<p>app"></iframe>')
    frame = page.frames[1]
    put = """async ([url, text]) => { try { const answer = await fetch(url, {method: "PUT",
        headers: {"Content-Type": "application/pdf"}, body: Uint8Array.from(atob(text), each => each.charCodeAt(0))});
        return [answer.status, (await answer.json()).data?.state] } catch (fault) { return fault.name } }"""
    encoded = b64encode(content).decode()
    assert frame.evaluate("origin") == "null"
    assert frame.evaluate(put, [link["url"].replace("/uploads/", "/manage/"), encoded]) == "TypeError"
    assert frame.evaluate(put, [link["url"], encoded]) == [201, "uploaded"]
    assert frame.evaluate(put, [link["url"], encoded])[0] == 404
