"""Assessments: run a framework's private specification against a company and report the result."""
