class KafkaError(Exception):
    """Kafka, or something that it needs, cannot be had; the text says what would help."""
