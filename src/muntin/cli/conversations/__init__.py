"""Files of conversations: read one, change each conversation, write the result in the same form."""
