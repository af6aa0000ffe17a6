"""The hash of what a run looks at."""

from muniment.assessments.evaluation.inputs import DocumentText, input_hash

FACTS = {"company": {"id": "tide", "name": "Tide Works", "teamSize": 5}, "distribution": None}
DOCUMENTS = [DocumentText("doc1", "accounts.pdf", "ab" * 32, [(1, "Annual accounts.")])]
SPECIFICATION = {"version": 3, "sections": [{"id": "s1"}]}


def test_the_hash_depends_on_the_facts_documents_and_specification_but_not_on_the_order_of_keys():
    turned = dict(reversed(FACTS.items()))
    assert input_hash(FACTS, DOCUMENTS, SPECIFICATION) == input_hash(turned, DOCUMENTS, SPECIFICATION)
    assert input_hash(FACTS, [], SPECIFICATION) != input_hash(FACTS, DOCUMENTS, SPECIFICATION)
    assert input_hash(FACTS, DOCUMENTS, {**SPECIFICATION, "version": 4}) != input_hash(FACTS, DOCUMENTS, SPECIFICATION)
