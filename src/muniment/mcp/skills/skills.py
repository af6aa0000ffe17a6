"""The skills of each server, and short forms of the owner's, for clients that offer prompts to pick."""

from pathlib import Path
from typing import Final

from muniment.mcp.declarations import Prompt
from muniment.mcp.extensions import Skill

_FOLDER: Final = Path(__file__).parent
# OpenAI's importer takes at most five skills of a server.
PUBLIC: Final = ("research-an-organization", "due-diligence")
OWNER: Final = ("keep-my-listing-current", "prepare-for-a-program")


def skills(names: tuple[str, ...]) -> tuple[Skill, ...]:
    """Return the skills with *names*, in order."""
    return tuple(Skill(text=(_FOLDER / name / "SKILL.md").read_text(encoding="utf-8")) for name in names)


PROMPTS: Final = (
    Prompt(
        name="refresh_my_listing",
        title="Refresh my listing",
        description="Find what is old or missing in one of your listings, and change it with your agreement.",
        arguments={"slug": "the listing's slug, as list_my_companies returns it"},
        render=lambda given: (
            f"Bring my listing {given['slug']} up to date. Call get_my_company and tell me what looks old or missing: "
            "summary, links, people, funding rounds, token holders, proposals. Ask me about at most five points at a "
            "time, and invent nothing. Then call update_my_company with only the fields that change and dryRun true, "
            "show me the difference, and send it with expectedVersion once I agree. Say what is public and what waits "
            "for a reviewer."
        ),
    ),
    Prompt(
        name="prepare_for_program",
        title="Prepare for a program",
        description="Close the gaps in the evidence of a listing for a program, run its assessment, and apply.",
        arguments={
            "slug": "the listing's slug, as list_my_companies returns it",
            "frameworkId": "the program, as list_frameworks returns it",
        },
        render=lambda given: (
            f"Prepare my listing {given['slug']} for the program {given['frameworkId']}. Call get_framework and say "
            "what it asks for. Call start_report_run, which spends nothing, and go through its missingEvidence with "
            "me: facts by update_my_company, files by upload_document or the url of create_document_upload. Tell me "
            "the price before execute_report_run. Then follow get_report_run_status, explain get_report, and call "
            "submit_application only when I say so."
        ),
    ),
)
