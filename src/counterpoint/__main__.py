"""``python -m counterpoint``: the command line, where the ``counterpoint`` script is not on the path.

Owns: nothing.
Does not own: the commands (``cli.main``).
Here because: other commands start a server of their own with the interpreter they run on.
"""

from counterpoint.cli.main import main

if __name__ == "__main__":
    main()
