"""Every figure on the pages is computed again from the documents of the API."""

from figures import Registry, Walk, addresses


def test_every_number_on_the_pages_of_the_demo_is_one_of_its_documents(demo):
    walk = Walk(Registry(f"http://127.0.0.1:{demo.port}"))
    with walk.registry.client:
        for path in addresses(walk.registry, 70):
            walk.walk(path)
    assert walk.differences == []
    assert walk.pages > 60
    assert walk.figures > 200
