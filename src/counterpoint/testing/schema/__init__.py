"""The form of every event, official and ours, and a validator that says where an event differs from it.

Owns: the official events as JSON schemas (``official.json``, written by ``tools/realtime_schema.py``), the
schemas of the extensions, checking an event against what its connection may see.
Does not own: what a sequence of events must fulfil (``testing.streams``).
Here because: tests, the conformance check and users of both must judge form by the same tables.
"""
