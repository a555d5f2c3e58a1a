"""`mercast demo`: brokers, publishers and subscribers at work; one broker is killed and comes back."""
