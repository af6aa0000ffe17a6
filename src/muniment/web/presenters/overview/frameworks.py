"""What a framework is, in public words; its specification stays private."""

from muniment.kernel.json import JSONObject
from muniment.web.presenters.company import day
from muniment.web.translating import gettext


def framework_facts(framework: JSONObject) -> list[JSONObject]:
    """Return the facts of a framework."""
    kinds = {"score": gettext("Score, for any company"), "program": gettext("Program, accepts applications")}
    facts = [
        (gettext("Kind"), kinds.get(framework["kind"], framework["kind"])),
        (gettext("Status"), gettext("Open") if framework["isOpen"] else gettext("Closed")),
        (gettext("Updated"), day(framework["updatedAt"]) if framework.get("updatedAt") else ""),
    ]
    return [{"label": label, "value": value} for label, value in facts if value]
