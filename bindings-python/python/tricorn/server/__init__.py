"""Server: what it offers, and the ways to serve it."""
