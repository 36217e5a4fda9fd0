"""JSON: how values become text, how text becomes values, and which library judges a type."""
