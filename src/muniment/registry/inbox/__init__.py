"""The reviewers' inbox: what waits, what its checks found, decisions on several items, replies, settings, digests."""
