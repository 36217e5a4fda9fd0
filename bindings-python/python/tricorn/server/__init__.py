"""The server: what it offers, and how it is served."""
