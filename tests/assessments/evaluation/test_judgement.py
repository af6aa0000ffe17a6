"""Whether a report's quotes are true."""

import pytest

from muniment.assessments.evaluation.inputs import DocumentText, read_inputs
from muniment.assessments.evaluation.judgement import Cited, is_quoted

CHUNKS = read_inputs({"company": {}}, [DocumentText("doc1", "a.txt", "ab" * 32, [(1, "Nets are  DRIED.")])]).chunks


@pytest.mark.parametrize(
    ("chunk", "quote", "quoted"),
    [
        (0, "nets are dried", True),
        (0, "nets are sold", False),
        (0, " ", False),
        (len(CHUNKS), "nets are dried", False),
        (-1, "nets are dried", False),
    ],
)
def test_a_quote_is_in_the_chunk_that_it_names_whatever_its_spaces_and_case(chunk, quote, quoted):
    assert is_quoted(Cited(chunk, quote), CHUNKS) is quoted
