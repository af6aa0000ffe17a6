"""A report as Markdown."""

from muniment.assessments.evaluation.markdown import plain, to_markdown


def test_markdown_escapes_quotes_and_shows_each_criterion():
    assert (
        plain("<img src=x> [go](http://evil.example)\n# head") == r"\<img src=x\> \[go\](http://evil.example) \# head"
    )
    report = {
        "reportId": "r1",
        "shows": "remediation",
        "companyName": "Tide *Works*",
        "frameworkName": "Plain",
        "specificationVersion": 3,
        "createdAt": "2026-11-21T10:00:00.000000Z",
        "overall": {"score": 62.5, "band": "B", "coverage": 0.75, "confidence": 0.83},
        "evaluator": {"kind": "rules", "model": None, "promptHash": None},
        "sections": [
            {
                "id": "s",
                "title": "One",
                "score": 66.7,
                "criteria": [
                    {
                        "id": "a",
                        "title": "Board",
                        "status": "partial",
                        "level": 2,
                        "maxLevel": 4,
                        "rationale": "Found.",
                        "citations": [{"source": "documents", "documentId": "d", "page": 2, "quote": "a|b"}],
                        "remediation": "Publish it.",
                    }
                ],
            }
        ],
    }
    text = to_markdown(report)
    assert r"# Tide \*Works\*: Plain" in text
    assert "**62.5 of 100**, band B" in text
    assert "**Partly met**, level 2 of 4. Found." in text
    assert r"> a\|b (document, page 2)" in text
    assert "Next: Publish it." in text
