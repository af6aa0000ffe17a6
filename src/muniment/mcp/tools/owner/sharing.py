"""
The tools of the owner-scoped server that give a report to others: by a link, and to a program.

Source: assessment-spec/1, report; decision 15.
"""

from functools import partial
from typing import Final

from muniment.assessments import applications, scores, sharing
from muniment.assessments.models import Application
from muniment.kernel.json import JSONObject
from muniment.kernel.wire import summary_path, timestamp
from muniment.mcp import confirmation, provenance
from muniment.mcp.confirmation import Confirmation, rehearsal
from muniment.mcp.declarations import Arguments, Caller, Marked, Tool
from muniment.mcp.tools.output_schemas import BOOLEAN, MOMENT, STRING, object_of, one_of, single, strings
from muniment.mcp.tools.owner.tool import DRY, RUN_ID, owner_tool
from muniment.oauth.token_authentication import Bridge
from muniment.schema.record import nullable

_APPLICATION: Final = object_of(
    {
        **strings("applicationId", "runId", "companySlug", "frameworkId", "receiver"),
        "state": one_of(*Application.State.values),
        "submittedAt": MOMENT,
        "decidedAt": MOMENT,
        "note": STRING,
        **DRY,
    },
    optional=("decidedAt", "note", *DRY),
)
_SHARED: Final = object_of({"runId": STRING, "shared": BOOLEAN, "url": nullable(STRING), **DRY}, optional=tuple(DRY))


class SharingTools:
    """The handlers."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url

    def share_report(self, arguments: Arguments, caller: Caller) -> JSONObject:
        if "publish" in arguments:
            return self._publish(arguments, caller)
        run_id, shared, url = arguments["runId"], arguments.get("shared", True), None
        question = Confirmation(caller, "share_report", arguments)
        with rehearsal(question):
            if shared:
                url = f"{self._base_url}/reports/shared/{sharing.share_report(caller.owner, run_id)}"
            else:
                sharing.unshare_report(caller.owner, run_id)
        shown = {"runId": run_id, "shared": shared, "url": None if question.is_dry else url}
        return {"data": {**shown, **question.marks()}}

    def _publish(self, arguments: Arguments, caller: Caller) -> JSONObject:
        """Publish the score of a report after a confirmation, or withdraw it."""
        run_id, what, url = arguments["runId"], arguments["publish"], None
        question = Confirmation(caller, "share_report", arguments)

        def approve(draft: scores.Draft) -> None:
            parts = ", also of each section" if what == "sections" else ""
            question.ask(
                f"This publishes the score {draft.score:g} of {draft.company.name} by {draft.framework.name}{parts}, "
                "with its date: on the company's and the framework's pages, in the API and in a badge. Findings, "
                "evidence and documents stay private.",
                bound=[draft.known_report_id, draft.known_sections],
                runId=run_id,
            )

        with rehearsal(question):
            if what == "withdraw":
                scores.withdraw_score(caller.owner, run_id)
            else:
                made = scores.publish_score(caller.owner, run_id, sections=what == "sections", approve=approve)
                url = self._base_url + summary_path(made.company.slug, made.framework.slug)
        return {"data": {"runId": run_id, "shared": what != "withdraw", "url": url, **question.marks()}}

    def submit_application(self, arguments: Arguments, caller: Caller) -> Marked:
        run_id = arguments["runId"]
        question = Confirmation(caller, "submit_application", arguments)
        with rehearsal(question):
            if arguments.get("withdraw", False):
                return _marked(applications.withdraw_report(caller.owner, run_id), question)
            with applications.submission(caller.owner, run_id) as draft:
                receiver, of = draft.receiver, draft.framework
                question.ask(
                    f"This submits the report of {draft.applicant.name} to {of.name}. Owners of {receiver.name} and "
                    "reviewers of the registry can then read it.",
                    bound=[draft.report.applications.count(), receiver.slug, of.slug],
                    is_application=True,
                    receiver=receiver.slug,
                    frameworkId=of.slug,
                )
        return _marked(draft, question)


def _marked(application: Application, question: Confirmation) -> Marked:
    shown = {
        **question.marks(),
        "applicationId": application.pk,
        "runId": application.report.run_id,
        "companySlug": application.applicant.slug,
        "frameworkId": application.framework.slug,
        "receiver": application.receiver.slug,
        "state": application.state,
        "submittedAt": timestamp(application.submitted_at),
    }
    if application.decided_at:
        shown["decidedAt"] = timestamp(application.decided_at)
    if application.note:
        shown["note"] = application.note
    mark = provenance.uploaded(application.report.document["createdAt"])
    return provenance.mark(shown, {("report", application.report_id): mark})


def sharing_tools(call: Bridge, base_url: str) -> tuple[Tool, ...]:
    """Return the tools that share reports."""
    tools = SharingTools(base_url)
    tool = partial(owner_tool, call=call)
    return (
        tool(
            tools.share_report,
            "Share a report",
            "Make a link with which anyone can read this report; shared: false ends all links. "
            "publish instead makes its score public, or withdraws it.",
            "reports:run",
            single(_SHARED),
            arguments={
                "runId": RUN_ID,
                "shared": {"type": "boolean", "default": True},
                "publish": {"enum": ["score", "sections", "withdraw"]},
                **confirmation.ARGUMENTS,
            },
            required=("runId",),
            confirmed=strings("runId"),
        ),
        tool(
            tools.submit_application,
            "Apply to a program",
            "Submit the report of a run of a program framework to the company that runs the program. Its owners and "
            "the registry's reviewers can then read it. withdraw: true takes an undecided application back.",
            "reports:run",
            single(_APPLICATION),
            arguments={
                "runId": RUN_ID,
                "withdraw": {"type": "boolean", "default": False},
                **confirmation.ARGUMENTS,
            },
            required=("runId",),
            destructive=True,
            confirmed=strings("receiver", "frameworkId"),
        ),
    )
