"""Stages that are servers elsewhere, spoken to by the HTTP interface of OpenAI.

Owns: requests, time-outs, retries, how answers are read, what a failure is called.
Does not own: what a stage is (``cascade.stages``), when one is asked or dropped (``cascade.session``).
Here because: language models, recognisers and voices are served by many programs that share this interface.
"""
