"""The dead letters, for those who look after them: listed, shown and replayed."""
