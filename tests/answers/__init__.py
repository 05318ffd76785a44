"""What the library answers today, kept as digests: a change that nobody meant shows here.

`python -m tests.answers --update` keeps today's answers, and prints those that were others before.
"""
