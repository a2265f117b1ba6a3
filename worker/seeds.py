"""The first threshold of a scorer that nobody has calibrated yet."""

from __future__ import annotations

# Chosen on labelled answers with the packaged model; docs/thresholds.md says how, and why it must be calibrated.
FLAG_BELOW_NATS = 0.15
ATTRIBUTE_BELOW_NATS = 0.15

NOTE = "seeded default, not calibrated for this application; see docs/thresholds.md"
