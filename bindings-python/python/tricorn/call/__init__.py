"""Handling of one request, on either side: function, context, options."""
