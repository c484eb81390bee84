"""What middleware and nodes are made of: tool results, events, stored decisions, trim arguments."""
