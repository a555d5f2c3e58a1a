"""Spark jobs over the taps. Of mercast they import `mercast.protocol` only: what they find, they find anew."""
