"""The words of tables in several languages: headings, positions, statuses, months; and the presets of public exports."""
