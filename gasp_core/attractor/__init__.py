"""How the scorer's states of an answer move while its context grows (docs/evaluation.md)."""
