"""Translate between values of LangChain and of the core: documents, messages, facts of models."""
