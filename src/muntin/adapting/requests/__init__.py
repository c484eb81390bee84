"""Requests of one conversation: what is sent, what is remembered, how full the window is.

It decides when a conversation is compacted and keeps that decision while it holds, so that a
provider's prompt cache can be used. It knows no framework.
"""
