"""What single cells are: dates, countries, people, and which fields the values of a column fit."""
