"""The words of tables in several languages: headings, positions, statuses, months; presets of public exports."""
