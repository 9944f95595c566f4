"""The server: WebSocket and HTTP routes, access, settings, metrics, drain.

Owns: everything that touches a socket or the configuration.
Does not own: sessions (``runtime``) nor what is said on the wire (``protocol``).
Here because: what faces the network changes for other reasons than what a session is.
"""
