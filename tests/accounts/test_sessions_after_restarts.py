"""A session outlives the processes that serve it."""

from make.accounts import PASSWORD
from services.product import Product, run
from services.visitor import Visitor

EMAIL = "ada@harbour.example"


def test_a_visitor_stays_signed_in_when_the_server_is_restarted(tmp_path):
    run("migrate", data=tmp_path, database_url="")
    run("user", "create", EMAIL, "--password-stdin", data=tmp_path, database_url="", stdin=f"{PASSWORD}\n")
    with Product(tmp_path, database_url="") as product:
        product.wait_ready()
        with Visitor(product.url, {}) as visitor:
            visitor.post("/accounts/login/", login=EMAIL, password=PASSWORD)
            assert EMAIL in visitor.get("/accounts/email/")
            assert product.stop() == 0
            product.start()
            product.wait_ready()
            assert EMAIL in visitor.get("/accounts/email/")
