"""`mercast demo`: all of it on one machine for two minutes. Three clusters under MERC, Kafka, Spark, Locust and the
dashboard; at half time an edge broker is killed; at the end every delivery is audited, and a report is written."""
