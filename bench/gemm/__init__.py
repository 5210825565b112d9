"""Matrix products: what they must give, their data, the cases, the search and the report."""
