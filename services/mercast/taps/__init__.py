"""Where tap rows go: to Kafka, or into files. Whatever happens there, routing goes on."""
