"""What tests of Counterpoint, of its plugins and of its clients are made of.

Owns: the virtual clock, the in-memory link, the simulator.
Does not own: test cases.
Here because: users test their own plugins and clients with the same tools, so these are part of the product.
"""
