"""A second opinion on flagged sentences, stored beside our verdict and never changing it. Off by default."""
