"""The command line: one module per command.

Owns: arguments, what is printed for people, exit codes.
Does not own: anything that a command does.
Here because: a program that embeds the server or the client must not meet argument parsing.
"""
