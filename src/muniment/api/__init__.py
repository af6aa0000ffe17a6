"""REST API version 1: contract, responses and reference page. Without Django."""
