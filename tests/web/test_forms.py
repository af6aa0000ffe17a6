"""The repeated rows of a listing's form."""

from muniment.web import forms


def test_rows_that_were_left_blank_do_not_add_up_when_a_page_comes_back():
    named = {"was": "", "name": "Ada", "slug": "", "title": "Engineer"}
    emptied = {"was": "old", "name": "", "slug": "", "title": ""}
    blank = {"was": "", "name": "", "slug": "", "title": ""}
    rows = forms.TEAM.shown([named, blank, emptied, blank, blank])
    assert len(rows) == 3 + forms.BLANK_ROWS
