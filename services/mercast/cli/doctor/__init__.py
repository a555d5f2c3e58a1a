"""`mercast doctor`: what running brokers tell of themselves, looked at and put into a bundle for others to look at."""
