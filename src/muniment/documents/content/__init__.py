"""File contents: type inspection, text extraction and virus scanning."""
