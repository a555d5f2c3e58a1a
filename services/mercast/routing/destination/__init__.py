"""Match early, carry a destination list, split it by next hop."""
