"""The models that ship.

Owns: the plugins ``scripted`` and ``cascade``, and the engines of the embedded voice.
Does not own: the contract that they fulfil (``plugins``), what drives them (``runtime``).
Here because: a server must be able to talk, and to be tested, with nothing else installed.
"""
