"""What the middleware and the nodes are made of: tool results, events, stored decisions, state."""
