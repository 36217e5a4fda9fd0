"""Types of the protocol, as programs see them."""
