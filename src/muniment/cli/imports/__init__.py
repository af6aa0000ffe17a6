"""Parts of the command `muniment import`: tables, the list of imports, undo."""
