"""What must be true after every step of a simulation.

Owns: the checks, one module for each thing that is watched, and ``Violation``.
Does not own: producing the steps (``testing.simulation``).
Here because: a rule that is checked in one place is the same rule in every run.

Each check is incremental: what one event costs does not depend on how long the session is.
"""
