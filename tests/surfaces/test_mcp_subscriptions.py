"""The official client subscribes to resources of a running product, and is told when its process stops."""

import asyncio
import json

import anyio
import pytest
from mcp import Client
from mcp.client.subscriptions import ResourceUpdated, SubscriptionLost

from services.product import Product, run

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("mcp.public", "mcp.eras")]
HARBOR = "registry://companies/harbor"


def publish(data, description):
    file = data / "companies.jsonl"
    rows = [
        {"company": {"id": "harbor", "name": "Harbor", "description": description}},
        {"company": {"id": f"other-{len(description)}", "name": "Other", "description": description}},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run("import", str(file), data=data)


async def test_the_official_client_is_told_of_a_publication_and_of_the_end_of_the_process(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    publish(data, "First.")
    wanted = [HARBOR, "registry://people/nobody"]
    with Product(data) as product:
        product.wait_ready()
        async with (
            Client(f"{product.url}/api/mcp", mode="2026-07-28") as client,
            client.listen(resource_subscriptions=wanted) as subscription,
        ):
            assert subscription.honored.resource_subscriptions == wanted
            await asyncio.to_thread(publish, data, "Second, longer.")
            with anyio.fail_after(30):
                assert await anext(subscription) == ResourceUpdated(uri=HARBOR)
            shown = (await client.read_resource(HARBOR)).contents[0].text
            assert "Second, longer." in shown
            await asyncio.to_thread(product.stop)
            with anyio.fail_after(30), pytest.raises((StopAsyncIteration, SubscriptionLost)) as ended:
                await anext(subscription)
            assert ended.type is StopAsyncIteration, "a process that stops ends each stream with a result"
