"""The protocol's types, as programs see them."""
