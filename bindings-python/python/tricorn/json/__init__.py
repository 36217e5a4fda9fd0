"""JSON: texts of values, values of texts, and the library that judges a type."""
