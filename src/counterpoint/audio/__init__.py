"""Audio between the wire, the session and the model: conversion, units, speech and turn detection.

Owns: G.711, streaming resampling, wire <-> canonical PCM, units with reservations, the ring of recent
input, built-in speech detectors, the turn segmenter.
Does not own: the names of formats (``protocol.audio``), neural detectors (``models``), what a session
does when speech starts or stops (``session``).
Here because: all of it is arithmetic on samples. Nothing here knows a loop, a thread or a clock: time
is counted in samples, so every result can be tested exactly and does not depend on how audio was cut.
"""
