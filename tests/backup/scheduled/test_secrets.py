"""What docs/BACKUP.md decides is all that a backup has in clear: the secret key, where it is a file."""

import tarfile

import pytest

from make import backups
from muniment import config
from muniment.accounts.models import Account
from muniment.accounts.tokens import create_token
from muniment.kernel.actor import COMMAND, SCOPES
from muniment.kernel.zstandard import zstd
from muniment.mail import outgoing
from muniment.setting_values import Provider
from services.leaks import left_behind

PASSWORD, CODE = "Wr3ck-of-the-Hesperus-1842", "C0de-of-the-Harbour-7731"
SETTINGS = {
    "mail_url": "smtp://registry:Mail-Secret-91872@mail.example:587",
    "oidc_providers": (Provider("sso", "Harbour login", "https://id.example", "registry", "Oidc-Secret-55102"),),
    "model_key": "Model-Key-90211",
    "stripe_secret_key": "sk_test_Stripe_Secret_4471",
}
IN_SETTINGS = ("Mail-Secret-91872", "Oidc-Secret-55102", "Model-Key-90211", "sk_test_Stripe_Secret_4471")


@pytest.mark.django_db(transaction=True)
def test_passwords_tokens_codes_and_settings_are_nowhere_in_the_place_and_the_key_only_in_the_key_file(tmp_path):
    account = Account.objects.create_user("keeper@harbour.example", PASSWORD)
    token = create_token(COMMAND, "a token", permitted=SCOPES, days=30, account=account).text
    outgoing.send("keeper@harbour.example", "Your code", f"The code is {CODE}.")
    made = backups.made(tmp_path / "place", **SETTINGS)
    content, key = b"", b""
    for file in (tmp_path / "place").rglob("*"):
        if file.is_file() and file.suffix != ".backup":
            content += file.read_bytes()
    with (
        (tmp_path / "place" / f"{made.name}.backup").open("rb") as packed,
        zstd.ZstdFile(packed) as unpacked,
        tarfile.open(fileobj=unpacked, mode="r|") as archive,
    ):
        for member in archive:
            found = archive.extractfile(member).read()
            if member.name == "keys/django.key":
                key = found
            else:
                content += found
    secrets = [
        PASSWORD,
        CODE,
        token,
        "Mail-Secret-91872",
        "Oidc-Secret-55102",
        "Model-Key-90211",
        "sk_test_Stripe_Secret_4471",
    ]
    assert left_behind(content, secrets) == set()
    own = (config.current().data / "keys" / "django.key").read_bytes()
    assert key == own
    assert own.strip() not in content
