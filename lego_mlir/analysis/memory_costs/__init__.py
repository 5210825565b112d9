"""memory_costs."""
