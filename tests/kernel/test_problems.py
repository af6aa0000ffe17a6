"""The family of refusals."""

import pytest

from muniment.kernel import problems

FAMILY = [
    (problems.BadRequest("m", "h"), 400, "bad_request"),
    (problems.Unauthorized("m", "h"), 401, "bad_request"),
    (problems.AtOrigin("https://registry.example", "/manage"), 403, "bad_request"),
    (problems.Forbidden("m", "h"), 403, "bad_request"),
    (problems.NotFound("m", "h"), 404, "not_found"),
    (problems.MethodNotAllowed("PUT", "GET"), 405, "method_not_allowed"),
    (problems.Conflict("m", "h"), 409, "bad_request"),
    (problems.LimitReached("m", "h"), 409, "bad_request"),
    (problems.TooLarge("m", "h"), 413, "bad_request"),
    (problems.TooMany("m", "h", retry_after_s=3), 429, "bad_request"),
    (problems.Internal("id-1"), 500, "internal_error"),
    (problems.Unavailable("m", "h"), 503, "internal_error"),
]


@pytest.mark.requirement("errors.codes-closed")
@pytest.mark.requirement("errors.code-of-status")
@pytest.mark.parametrize(("problem", "status", "code"), FAMILY, ids=lambda value: str(value)[:24])
def test_every_problem_has_its_status_and_one_of_the_four_codes(problem, status, code):
    assert (problem.status, problem.code) == (status, code)


def test_every_member_of_the_family_is_in_the_table():
    def descend(kind):
        return {kind, *(below for child in kind.__subclasses__() for below in descend(child))}

    ours = {kind for kind in descend(problems.Problem) - {problems.Problem} if kind.__module__ == problems.__name__}
    assert {type(problem) for problem, _, _ in FAMILY} == ours


@pytest.mark.requirement("errors.envelope")
def test_the_envelope_holds_code_message_and_hint_and_nothing_else():
    assert problems.NotFound("No company.", "See the list.").to_wire() == {
        "error": {"code": "not_found", "message": "No company.", "hint": "See the list."}
    }


def test_the_waiting_time_of_a_refusal_is_an_integer_header():
    assert problems.TooMany("m", "h", retry_after_s=3, headers={"RateLimit": "x"}).headers == {
        "RateLimit": "x",
        "Retry-After": "3",
    }


def test_the_allowed_methods_are_in_the_header_and_the_hint():
    refusal = problems.MethodNotAllowed("DELETE", "GET, HEAD")
    assert refusal.headers == {"Allow": "GET, HEAD"}
    assert "GET, HEAD" in refusal.hint
    assert "DELETE" in refusal.message


@pytest.mark.requirement("request-id.internal-error")
def test_an_unexpected_error_shows_its_request_id_only():
    assert "req-7" in problems.Internal("req-7").message
