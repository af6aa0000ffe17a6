"""How a company is judged by a specification. Pure: the same input gives the same report."""
