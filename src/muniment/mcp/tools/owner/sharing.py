"""
The tools of the owner-scoped server that give a report to others: by a link, and to a program.

An application to a program needs a confirmation: the first call shows what it would do, the second acts. Every other
call acts at once: it can be undone, or has shown its price before. A client that declares elicitation (2026-07-28) is
asked to ask its user; any other gets a token, and the same call with it acts. Both carry the same token. It proves that
the caller was shown what follows, not that a person agreed. It is signed, bound to the account, the credential and the
arguments, and to what the call changes, so that it is good once; it holds for ten minutes.

Source: MCP specification 2026-07-28, input required; decisions 15 and 58; assessment-spec/1, report.
"""

import hashlib
from datetime import timedelta
from functools import partial
from typing import Final

import msgspec
from django.core import signing

from muniment.assessments import applications, scores, sharing
from muniment.assessments.models import Application
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.wire import summary_path, timestamp
from muniment.mcp.declarations import Answer, Arguments, Caller, InputRequired, Marked, Tool
from muniment.mcp.tools import answers
from muniment.mcp.tools.output_schemas import BOOLEAN, MOMENT, STRING, object_of, one_of, single, strings
from muniment.mcp.tools.owner.tool import DRY, DRY_RUN, ID, owner_tool, rehearsal
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
                url = f"{self._base_url}/reports/shared/{sharing.share_report(caller.actor, run_id)}"
            else:
                sharing.unshare_report(caller.actor, run_id)
        shown = {"runId": run_id, "shared": shared, "url": None if arguments.get("dryRun", False) else url}
        return {"data": answers.dry_marked(shown, arguments)}

    def _publish(self, arguments: Arguments, caller: Caller) -> JSONObject:
        """Publish the score of a report, or withdraw it."""
        run_id, what, url = arguments["runId"], arguments["publish"], None
        with rehearsal(arguments):
            if what == "withdraw":
                scores.withdraw_score(caller.actor, run_id)
            else:
                made = scores.publish_score(caller.actor, run_id, sections=what == "sections")
                url = self._base_url + summary_path(made.company.slug, made.framework.slug)
        return {"data": answers.dry_marked({"runId": run_id, "shared": what != "withdraw", "url": url}, arguments)}

    def submit_application(self, arguments: Arguments, caller: Caller) -> Answer:
        run_id = arguments["runId"]
        asked: JSONObject = {}
        try:
            with rehearsal(arguments):
                if arguments.get("withdraw", False):
                    return _marked(applications.withdraw_report(caller.actor, run_id), arguments)
                with applications.submission(caller.actor, run_id) as draft:
                    receiver, of = draft.receiver, draft.framework
                    bound = [draft.report.applications.count(), receiver.slug, of.slug]
                    asked = question(
                        f"This submits the report of {draft.applicant.name} to {of.name}. Owners of {receiver.name} "
                        "and reviewers of the registry can then read it.",
                        caller,
                        arguments,
                        bound=bound,
                        receiver=receiver.slug,
                        frameworkId=of.slug,
                    )
                    if not arguments.get("dryRun", False):
                        require(asked, caller, arguments, bound=bound)
        except Unconfirmed as unconfirmed:
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
    if asked and arguments.get("dryRun", False):
        shown["confirmation"] = asked
    mark = answers.mark_of_upload(application.report.document["createdAt"])
    return answers.marked(answers.dry_marked(shown, arguments), {("report", application.report_id): mark})


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
                "runId": ID,
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
                "runId": ID,
                "withdraw": {"type": "boolean", "default": False},
                "confirm": CONFIRM,
                "dryRun": DRY_RUN,
            },
            required=("runId",),
            destructive=True,
        ),
    )


CONFIRM: Final[JSONObject] = {"type": "string", "maxLength": 400}
VALID_S: Final = 600
_SALT: Final = "muniment.mcp.tools.owner.sharing"
_OTHERS: Final = frozenset({"confirm", "dryRun"})
"""Arguments that do not change what a call does."""


class Unconfirmed(Exception):  # noqa: N818 - an answer, not a fault
    """
    The call may not act yet, or its user declined.

    Args:
        question: the member `confirmation` of the answer.
    """

    def __init__(self, question: JSONObject) -> None:
        super().__init__(question["message"])
        self.question = question


def question(message: str, caller: Caller, arguments: Arguments, *, bound: object, **further: str) -> JSONObject:
    """
    Return what the call asks: the member `confirmation` of an answer.

    Args:
        message: what the call will do.
        bound: values that the call changes, so that its token is good once, and those that it depends on.
        further: the same as members.
    """
    if caller.elicits:  # its user is asked by the call itself, and no token replaces the answer
        return {"message": message, **further}
    return {
        "reason": "confirmation_required",
        "message": message,
        "hint": "Show this to the user. If they agree, repeat the call with confirm.",
        "confirm": signing.dumps(_digest(caller, arguments, bound), salt=_SALT),
        "expiresAt": timestamp(now() + timedelta(seconds=VALID_S)),
        **further,
    }


def require(asked: JSONObject, caller: Caller, arguments: Arguments, *, bound: object) -> None:
    """
    Return if the user, or a token in the arguments, has agreed to the call.

    The answer of a user counts only for what was shown: a changed call is asked about again.

    Args:
        asked: what :func:`question` returned.
        bound: as for :func:`question`.

    Raises:
        Unconfirmed: the call must be repeated with the token, or its user declined.
        InputRequired: the client must ask its user.
    """
    digest = _digest(caller, arguments, bound)
    if not caller.elicits:
        if not _holds(arguments.get("confirm", ""), digest):
            raise Unconfirmed(asked)
        return
    if not caller.answer or not _holds(caller.state, digest):
        raise InputRequired(asked["message"], signing.dumps(digest, salt=_SALT))
    if caller.answer != "accept":
        message, hint = "The user did not agree. Nothing was submitted.", "Do not repeat the call unless they ask."
        raise Unconfirmed({"reason": "declined", "message": message, "hint": hint})


def _digest(caller: Caller, arguments: Arguments, bound: object) -> str:
    actor = caller.actor
    rest = {name: value for name, value in arguments.items() if name not in _OTHERS}
    meant = [actor.account_id, actor.credential_id, rest, bound]
    return hashlib.sha256(msgspec.json.encode(meant, order="deterministic")).hexdigest()[:32]


def _holds(token: str, digest: str) -> bool:
    try:
        return bool(signing.loads(token, salt=_SALT, max_age=VALID_S) == digest)
    except signing.BadSignature:
        return False
