"""What makes sessions run: one runner per session, and the manager that admits, resumes and ends them.

Owns: carrying out effects, slots, leases, tasks, detection off the loop.
Does not own: decisions (``session``), retained output (``delivery``), sockets (``serving``).
Here because: this is the only layer that knows both the session machine and the model plugins.
"""
