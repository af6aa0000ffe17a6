"""The meaning of single cells: dates, countries, people, and the fields that the values of a column fit."""
