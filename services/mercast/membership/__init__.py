"""Who is in a cluster: a static list, or one seed address."""
