"""Errors of pages: what visitors can cause leaves no trace in the log."""

import pytest

from make.accounts import account, signed_in


@pytest.mark.django_db
@pytest.mark.parametrize("page", ["/accounts/reauthenticate/code/", "/accounts/reauthenticate/code/confirm/"])
def test_a_page_of_a_method_that_is_off_is_refused_without_a_trace(page, caplog):
    answer = signed_in(account()).get(page)
    assert answer.status_code == 403
    assert b"have permission to view this page" in answer.content
    assert [record.message for record in caplog.records if record.exc_info] == []
