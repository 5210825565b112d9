"""What a kernel costs: instructions by class, what each memory access moves, a report."""
