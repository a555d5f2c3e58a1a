"""Map the destination set to one or more multicast groups."""
