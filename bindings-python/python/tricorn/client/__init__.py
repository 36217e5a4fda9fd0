"""Client: connections to servers, and requests to them."""
