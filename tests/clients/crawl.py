"""
Read every page of a running registry through a client that was generated from its contract.

``python crawl.py FOLDER ADDRESS``, where FOLDER holds the generated package ``client``.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

from client import Client
from client.api.companies import get_company, list_companies
from client.api.frameworks import get_framework, list_frameworks
from client.api.people import get_person, list_people
from client.api.registry import get_stats
from client.models import Error


def found(answer):
    assert answer is not None
    assert not isinstance(answer, Error), answer
    return answer


def walk(list_page, read, key):
    seen, page, pages = [], 1, 1
    while page <= pages:
        answer = found(list_page.sync(client=registry, page=page, page_size=17))
        pages = answer.pagination.page_count
        seen += [getattr(item, key) for item in answer.data]
        page += 1
    for name in seen:
        found(read.sync(name, client=registry))
    return len(seen)


with Client(base_url=sys.argv[2], raise_on_unexpected_status=True) as registry:
    frameworks = [item.framework_id for item in found(list_frameworks.sync(client=registry)).data]
    for framework_id in frameworks:
        found(get_framework.sync(framework_id, client=registry))
    counted = {
        "companies": walk(list_companies, get_company, "id"),
        "people": walk(list_people, get_person, "slug"),
        "frameworks": len(frameworks),
    }
    stats = found(get_stats.sync(client=registry)).data
    assert (stats.total, stats.founders, stats.frameworks) == tuple(counted.values())
    sys.stdout.write(json.dumps(counted))
