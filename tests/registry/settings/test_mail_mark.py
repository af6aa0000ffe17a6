"""The mark of the registry in mail: a part of the message, which loads nothing."""

import io
from email import message_from_bytes, policy

import pytest
from PIL import Image

from make.accounts import deliver_mail
from muniment.mail import delivery, outgoing
from muniment.registry.company.pictures import store_picture
from muniment.registry.settings import mail_mark
from muniment.registry_toml import applied
from muniment.registry_toml.reading import check

pytestmark = pytest.mark.django_db


def picture(width, height) -> str:
    out = io.BytesIO()
    Image.new("RGB", (width, height), "#0b5d3b").save(out, "PNG")
    return store_picture(out.getvalue())


def sent():
    before = set(delivery.folder().glob("*.eml"))
    outgoing.send("ada@guild.example", "Hello", "A text.")
    deliver_mail()
    [file] = set(delivery.folder().glob("*.eml")) - before
    return message_from_bytes(file.read_bytes(), policy=policy.default)


@pytest.mark.parametrize(("declared", "alt", "width"), [("mark", "", 32), ("logo", "Guild", 128)])
def test_a_message_contains_the_mark_or_the_logo(monkeypatch, declared, alt, width):
    path = picture(64, 64) if declared == "mark" else picture(400, 100)
    found = check({"registry": {"name": "Guild"}, "brand": {declared: path}})
    monkeypatch.setattr(applied, "current", lambda: found)
    mail_mark._drawn.cache_clear()
    message = sent()
    html = message.get_body(("html",)).get_content()
    assert f'src="cid:registry@muniment" alt="{alt}" width="{width}"' in html
    assert "http" not in html.partition("<body")[2].partition('role="main"')[0]
    [image] = [part for part in message.walk() if part.get_content_type() == "image/png"]
    assert (image["Content-ID"], image.get_content_disposition()) == ("<registry@muniment>", "inline")
    with Image.open(io.BytesIO(image.get_content())) as shown:
        assert shown.height == 96
    assert message.get_body(("plain",)).get_content().strip() == "A text."


def test_without_a_picture_a_message_has_the_initial(monkeypatch, caplog):
    found = check({"registry": {"name": "Guild"}, "brand": {"mark": f"/pictures/{'0' * 32}-512.webp"}})
    for settings in (check({"registry": {"name": "Guild"}}), found):
        monkeypatch.setattr(applied, "current", lambda settings=settings: settings)
        mail_mark._drawn.cache_clear()
        message = sent()
        assert ">G</td>" in message.get_body(("html",)).get_content()
        assert message.get_content_type() == "multipart/alternative"
    assert "there is no picture" in caplog.text
