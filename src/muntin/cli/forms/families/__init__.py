"""Forms by family: providers, frameworks, data sets, coding agents, exports, traces, texts.

A module here knows the records of one family and the documents they come in.
"""
