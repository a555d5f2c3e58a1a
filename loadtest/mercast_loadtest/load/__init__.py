"""Load for brokers, by Locust: publishers and subscribers, and a ledger of what is due to whom."""
