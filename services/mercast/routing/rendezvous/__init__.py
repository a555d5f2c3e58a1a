"""Meet at the node that owns the type's hash."""
