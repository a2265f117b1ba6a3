"""Learning a readout from labelled answers."""
