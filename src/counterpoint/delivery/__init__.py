"""What was said, who is listening, and from where.

Owns: a session's event log, its resume credential, its attachments, the writer of each attachment.
Does not own: what is said (``session``), how it is spelled (``protocol``), sockets (``serving``).
Here because: a session outlives its connections; what it said must outlive them too.
"""
