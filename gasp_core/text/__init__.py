"""What texts tell without a model: layout, sentences, chunks, refusals, novel words. Text in, spans and counts out."""
