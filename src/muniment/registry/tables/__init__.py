"""Import of tables: spreadsheets, CSV, JSON and archives of them, by a mapping of columns to fields."""
