"""The client: connections to servers, and what it asks them."""
