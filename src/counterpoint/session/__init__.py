"""One session as a pure state machine.

Owns: what a command or a model's output does to a conversation.
Does not own: time, tasks, sockets, models (``runtime`` performs what the machine asks for).
Here because: a function of its inputs and ``now`` can be replayed, tabulated and searched for faults.
"""
