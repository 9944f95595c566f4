"""Whether a server speaks the Realtime API as its clients need it, and the extensions if it offers them.

Owns: checks that drive a live server, one name for each promise of the wire contract that a client can see.
Does not own: rules that show in the events alone (``testing.streams``), forms (``testing.schema``).
Here because: a promise that anybody can check is worth more than one that is only written down.
"""
