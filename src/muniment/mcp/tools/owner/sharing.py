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
from muniment.mcp.declarations import Answer, Arguments, Caller, Marked, Tool
from muniment.mcp.tools.output_schemas import BOOLEAN, MOMENT, STRING, object_of, one_of, single, strings
from muniment.mcp.tools.owner import dry_run
from muniment.mcp.tools.owner.dry_run import DRY, DRY_RUN, is_dry, rehearsal
from muniment.mcp.tools.owner.tool import RUN_ID, owner_tool
from muniment.oauth.token_authentication import Bridge
from muniment.schema.record import nullable

_NOT_SUBMITTED: Final = "not_submitted"
"""The state of an application that waits for a confirmation, or that the user declined."""
_APPLICATION: Final = object_of(
    {
        **strings("applicationId", "runId", "companySlug", "frameworkId", "receiver"),
        "state": one_of(*Application.State.values, _NOT_SUBMITTED),
        "submittedAt": MOMENT,
        "decidedAt": MOMENT,
        "note": STRING,
        "confirmation": object_of(
            {
                "reason": one_of("confirmation_required", "declined"),
                **strings("message", "hint", "confirm", "expiresAt", "receiver", "frameworkId"),
            },
            optional=("reason", "hint", "confirm", "expiresAt", "receiver", "frameworkId"),
        ),
        **DRY,
    },
    optional=(
        *("applicationId", "companySlug", "frameworkId", "receiver", "submittedAt"),
        *("decidedAt", "note", "confirmation", *DRY),
    ),
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
        with rehearsal(arguments):
            if shared:
                url = f"{self._base_url}/reports/shared/{sharing.share_report(caller.owner, run_id)}"
            else:
                sharing.unshare_report(caller.owner, run_id)
        shown = {"runId": run_id, "shared": shared, "url": None if is_dry(arguments) else url}
        return {"data": dry_run.marked(shown, arguments)}

    def _publish(self, arguments: Arguments, caller: Caller) -> JSONObject:
        """Publish the score of a report, or withdraw it."""
        run_id, what, url = arguments["runId"], arguments["publish"], None
        with rehearsal(arguments):
            if what == "withdraw":
                scores.withdraw_score(caller.owner, run_id)
            else:
                made = scores.publish_score(caller.owner, run_id, sections=what == "sections")
                url = self._base_url + summary_path(made.company.slug, made.framework.slug)
        return {"data": dry_run.marked({"runId": run_id, "shared": what != "withdraw", "url": url}, arguments)}

    def submit_application(self, arguments: Arguments, caller: Caller) -> Answer:
        run_id = arguments["runId"]
        asked: JSONObject = {}
        try:
            with rehearsal(arguments):
                if arguments.get("withdraw", False):
                    return _marked(applications.withdraw_report(caller.owner, run_id), arguments)
                with applications.submission(caller.owner, run_id) as draft:
                    receiver, of = draft.receiver, draft.framework
                    bound = [draft.report.applications.count(), receiver.slug, of.slug]
                    asked = confirmation.question(
                        f"This submits the report of {draft.applicant.name} to {of.name}. Owners of {receiver.name} "
                        "and reviewers of the registry can then read it.",
                        caller,
                        arguments,
                        bound=bound,
                        receiver=receiver.slug,
                        frameworkId=of.slug,
                    )
                    if not is_dry(arguments):
                        confirmation.require(asked, caller, arguments, bound=bound)
        except confirmation.Unconfirmed as unconfirmed:
            return {"data": {"runId": run_id, "state": _NOT_SUBMITTED, "confirmation": unconfirmed.question}}
        return _marked(draft, arguments, asked)


def _marked(application: Application, arguments: Arguments, asked: JSONObject | None = None) -> Marked:
    shown = {
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
    if asked and is_dry(arguments):
        shown["confirmation"] = asked
    mark = provenance.uploaded(application.report.document["createdAt"])
    return provenance.mark(dry_run.marked(shown, arguments), {("report", application.report_id): mark})


def sharing_tools(call: Bridge, base_url: str) -> tuple[Tool, ...]:
    """Return the tools that share reports."""
    tools = SharingTools(base_url)
    tool = partial(owner_tool, call=call)
    return (
        tool(
            tools.share_report,
            "Share a report",
            "Make a link with which anyone can read this report; shared: false ends all links. "
            "publish instead makes its score public (with its date, on pages, in the API and in a badge), or "
            "withdraws it.",
            "reports:run",
            single(_SHARED),
            arguments={
                "runId": RUN_ID,
                "shared": {"type": "boolean", "default": True},
                "publish": {"enum": ["score", "sections", "withdraw"]},
                "dryRun": DRY_RUN,
            },
            required=("runId",),
        ),
        tool(
            tools.submit_application,
            "Apply to a program",
            "Submit the report of a run of a program framework to the company that runs the program. Its owners and "
            "the registry's reviewers can then read it. The first call submits nothing: show its confirmation to the "
            "user. withdraw: true takes an undecided application back.",
            "reports:run",
            single(_APPLICATION),
            arguments={
                "runId": RUN_ID,
                "withdraw": {"type": "boolean", "default": False},
                "confirm": confirmation.CONFIRM,
                "dryRun": DRY_RUN,
            },
            required=("runId",),
            destructive=True,
        ),
    )
