"""The language-model evaluator: its prompts, and the validation of its answers."""
