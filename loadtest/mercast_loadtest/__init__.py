"""Load and speed: what mercast does under load, and how fast against a yardstick."""
