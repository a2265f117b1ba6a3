"""Detectors by name: what each makes one number per sentence of, how it learns, whose scores it may read."""
