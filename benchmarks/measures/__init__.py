"""What the quality parts measure, apart from the library and its peers.

Each module takes a function under test and returns scores for real or generated cases. No model is
called, and every run gives the same scores.

* `tokens`: exact counts and the cost of messages, used by all others.
* `blocks`: passages of single-step questions with duplicates inside a block of text.
* `vectors`: vectors of other models for these passages.
* `two_steps`: both passages of a two-step question inside a block of text.
* `linked`: made cases with other links: code, ids, chains of three, German, Chinese.
* `runs`: values that an agent needs for its next call.
* `histories`: evidence left of long conversations.
* `needs`: open requests, bursts, recall, finished rounds, filling, rising budgets.
* `rules`: standing rules of users inside real histories.
* `scenarios`: strings that the compression scenarios of Gemini CLI ask for.
"""
