"""Who is in a cluster: a static list, one seed address, or the Kubernetes API."""
