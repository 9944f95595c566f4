#!/bin/sh
# Prints the path of the first Python that can run Counterpoint; fails with one line that says what to do.
#
# Owns: which versions are supported (as pyproject.toml says; the voice has wheels up to 3.13).
# Does not own: making the virtual environment (Makefile).
# Here because: an unsupported Python should be told before anything is installed, not by a failing build.
#
# Usage: tools/find-python.sh [PYTHON]
set -eu

suitable='
import ensurepip, sys, venv
if not (3, 11) <= sys.version_info[:2] <= (3, 13): sys.exit(1)
print(sys.executable)
'
for candidate in ${1:-python3 python3.13 python3.12 python3.11}; do
  if path=$("$candidate" -c "$suitable" 2>/dev/null); then
    echo "$path"
    exit 0
  fi
done
found=$("${1:-python3}" --version 2>/dev/null || echo "no usable ${1:-python3}")
echo "counterpoint needs Python 3.11, 3.12 or 3.13 with its venv module; found: $found." \
  "Install one (Debian: apt install python3 python3-venv), or name it: make PYTHON=/path/to/python3.11" >&2
exit 1
