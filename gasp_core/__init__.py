"""Grounding scores for the sentences of a fixed answer: text and tensors in, frozen values out."""
