"""A thin layer over Kafka: a source of raw records, a sink, a few questions. Only here is kafka imported."""
