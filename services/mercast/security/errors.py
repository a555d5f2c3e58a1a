class SecurityError(Exception):
    """A file of tokens or certificates is of no use, for the reason given."""
