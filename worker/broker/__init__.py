"""Kafka, thinly: a source of raw records, a sink, and the few administrative questions. Only here is kafka imported."""
