"""One assembly of a prompt: reading the input, what is prepared once, the policy."""
