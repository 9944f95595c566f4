"""What must hold of everything that a client gets: named rules over captured events.

Owns: one rule per promise of the wire contract that shows in the events alone.
Does not own: capturing them (``testing.conformance``, or any test), promises that show only in what a client
does and what comes of it.
Here because: a rule that is a pure function of a recording judges a live server, a test and a bug report
alike.
"""
