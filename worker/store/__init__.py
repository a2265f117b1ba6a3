"""The only place that speaks SQL: what the worker keeps in PostgreSQL.

``store`` opens it and holds a repository for each thing that is kept; ``database`` says how each of them reads and
writes. This file imports nothing, so that ``errors`` can be had without the database layer.
"""
