"""What of a model's reason a report may show."""

import pytest

from muniment.assessments.evaluation.language_model.conversation import presentable

SECRET = "検査人は毎年署名する必要があります"


@pytest.mark.parametrize("turn", [1, -1])
def test_ten_letters_of_a_private_text_in_a_script_without_spaces_are_not_shown(turn):
    assert presentable(f"はい、{SECRET[3:13][::turn]}。", [SECRET], []) == ""
    assert presentable(f"はい、{SECRET[3:12][::turn]}。", [SECRET], []) != ""
    assert presentable(f"はい、{SECRET[3:13]}。", [SECRET], [SECRET]) != "", "the reader knows it anyway"
    for letters in (SECRET[:10], SECRET[-10:]):
        assert presentable(f"はい、{letters[::turn]}。", [SECRET], []) == ""


def test_a_few_equal_letters_of_a_script_with_spaces_are_an_accident():
    private = "The auditor countersigns documents"
    assert presentable("Two auditors countersigned.", [private], []) != ""
    assert presentable("Theauditorcountersignsdocuments", [private], []) == ""
