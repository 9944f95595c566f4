"""The model side's contract, and how a plugin is found.

Owns: the types a model author writes against, and loading by entry point or ``module:attribute``.
Does not own: the plugins that ship (``models``) nor what drives them (``runtime``).
Here because: a model's author reads this package and nothing else.
"""
