"""The cascade: recognition, language model and synthesis in a row, as one turn-based model.

Owns: the stage interfaces, the pipeline between them, speculation in pauses, prompts, and the adapters of the
embedded voice.
Does not own: the engines (``models.voice``), when a turn is over (``session``, ``audio.turns``).
Here because: any recogniser, model and voice make a conversation, if they start early and stop at once.
"""
