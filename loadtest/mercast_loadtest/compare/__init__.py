"""The same load over several strategies, each on brokers of its own, and what Spark's metrics say of them."""
