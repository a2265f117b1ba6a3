"""The interface of the package gasp-rag: cases, scores, detections, files of them, and metrics."""
