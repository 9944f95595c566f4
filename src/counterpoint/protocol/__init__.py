"""The wire: ids, audio values, items, commands, events and their encoding.

Owns: the vocabulary of the wire contract and its bytes.
Does not own: what a command does (``session``) or who may send it (``serving``).
Here because: server and client speak the same language and neither may drag in the other.
"""
