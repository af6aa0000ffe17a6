"""Each object of the wire, declared once: its fields, their types, limits and labels. No I/O, and no Django."""
