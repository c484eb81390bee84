"""Forms in which conversations are written to files, and how their messages are read and changed.

A form knows its records and nothing of files, commands or budgets.
"""
