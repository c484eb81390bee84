"""muntin divides the context window of a language model."""
