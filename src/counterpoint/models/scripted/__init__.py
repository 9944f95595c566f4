"""The scripted model: it says what its client wrote down, to the sample and to the millisecond.

Owns: the script's keys, the answers that follow from one, and the log of every call into the model.
Does not own: anything a session decides (``session``), nor time (the loop that runs it).
Here because: tests of a client or a server need a model whose every sample proves where it came from.

The keys are those of the wire contract, section 12.
"""
