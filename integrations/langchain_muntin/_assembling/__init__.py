"""One assembly: reading the input, what is prepared once, the policy, passages of retrievers."""
