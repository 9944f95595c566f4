"""The checks, one module for each section of the wire contract.

Owns: what a client does, and what a server must do then.
Does not own: talking to the server (``peer``, ``target``), the order and outcome of checks (``run``).
Here because: a check should be found where its rule is written.
"""
