"""The audit service: Kafka in, scores through gasp_core, Postgres out."""
