"""mercast: content-based publish/subscribe for Kubernetes."""

__version__ = "0.1.0"
