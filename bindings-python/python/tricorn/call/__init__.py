"""One request on both ends: the function that works on it, its context, its options."""
