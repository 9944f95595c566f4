"""Work that runs somewhere else: stages, and the executors that they run on.

Owns: the stage port; threads, worker processes and Ray actors behind it; plugins placed on them.
Does not own: the contract with models (``plugins``), who decides what is asked of one (``session``).
Here because: a model that shares the interpreter with the event loop holds up every session.
"""
