"""Forward passes: prompts and a fixed answer in, hidden states at the answer's positions out."""
