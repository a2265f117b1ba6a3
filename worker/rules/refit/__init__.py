"""Learning the detector from reviewers: a correction of its scores for one app, and whether it is worth having."""
