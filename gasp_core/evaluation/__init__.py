"""The measuring instrument: how well detectors find what people found unsupported, with intervals and controls."""
