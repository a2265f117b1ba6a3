"""Thresholds from review labels, with bounds that hold under the way the labels were collected. Pure numbers."""
