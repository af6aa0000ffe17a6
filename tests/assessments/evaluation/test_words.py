"""Words of a text: phrases, passages and quotes."""

from muniment.assessments.evaluation.words import fold, holds_phrase, passages, quote_with


def test_passages_split_no_phrase_and_stay_short():
    text = " ".join(f"word{n}" for n in range(900)) + ". Short one. Another."
    found = list(passages(text))
    assert all(len(each) <= 600 for each in found)
    for n in range(899):
        assert any(holds_phrase(fold(each), f"word{n} word{n + 1}") for each in found)
    assert quote_with(text, "word450 word451").count("word450 word451") == 1
    assert len(quote_with(text, "word450 word451")) <= 300


def test_a_quote_at_the_end_of_a_long_text_is_as_long_as_any():
    text = " ".join(f"word{n}" for n in range(900))
    found = quote_with(text, "word898 word899")
    assert found.endswith("word898 word899")
    assert 280 <= len(found) <= 300


def test_a_quote_at_the_beginning_of_a_long_text_begins_with_it():
    text = " ".join(f"word{n}" for n in range(900))
    assert quote_with(text, "word0 word1").startswith("word0 word1 word2")


def test_a_text_without_words_has_no_passage():
    assert list(passages(" ")) == []
