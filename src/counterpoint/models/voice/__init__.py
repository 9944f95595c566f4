"""The embedded voice: speech engines that run inside the process, on CPU cores alone.

Owns: one small class per engine (voice activity, end of turn, recognition, language model, synthesis),
    where their weights are, and how they are installed.
Does not own: when which engine runs, nor what is thrown away (the cascade above); the wire.
Here because: the default model must answer aloud with nothing but packages from the registry.

Every engine is synchronous, is called from worker threads, and exists once per process; what belongs
to a session is a separate value. Nothing here is imported until the engines are loaded, and neither
are the packages of the ``voice`` extra.
"""
