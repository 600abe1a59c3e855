"""How far what a method works with is from the truth: stale rows, wrong gradients."""
