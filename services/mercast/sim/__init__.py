"""A deterministic simulator: the brokers' own routing code on virtual time, with faults."""
