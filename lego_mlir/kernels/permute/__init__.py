"""permute."""
