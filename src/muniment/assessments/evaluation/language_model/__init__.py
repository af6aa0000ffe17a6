"""The evaluator by a language model: what it is told, and what of its answer is believed."""
