"""The only place that speaks SQL: what the worker keeps in PostgreSQL. Names come from its modules."""
