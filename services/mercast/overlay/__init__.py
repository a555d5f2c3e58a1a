"""Graph, link state, shortest paths, failure detection, splitting of lists. Pure."""
