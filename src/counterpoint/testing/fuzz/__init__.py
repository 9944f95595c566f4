"""Frames that nobody would write, sent to a server that must answer each of them.

Owns: making frames out of valid ones, sending them, judging what comes back, shortening what fails.
Does not own: rules about what a client gets (``testing.streams``), lost connections (``testing.simulation``).
Here because: whoever writes a model plugin can find out what a stranger's client does to it.
"""
