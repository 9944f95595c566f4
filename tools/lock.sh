#!/bin/sh
# Writes requirements/*.lock: every version with its hashes, for Python 3.11 to 3.13 on any platform.
#
# Owns: which lock files there are, and that they agree on the versions that they share.
# Does not own: what is required (pyproject.toml).
# Here because: an install that is not locked is another install tomorrow.
#
# Usage: tools/lock.sh UV [--upgrade]     Without --upgrade, versions that still satisfy pyproject.toml stay.
set -eu
cd "$(dirname "$0")/.."
uv=$1
shift

compile() { # NAME INPUT [OPTION...]
  name=$1
  input=$2
  shift 2
  "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --no-header --no-annotate --output-file "requirements/$name.lock" "$@" "$input"
  sed -i.bak "1i\\
# Written by \`make lock\`. Install with: pip install --require-hashes -r requirements/$name.lock
" "requirements/$name.lock"
  rm "requirements/$name.lock.bak"
  echo "requirements/$name.lock: $(grep -c == "requirements/$name.lock") packages"
}

# What builds the package in place, without the network that an isolated build would need.
printf 'hatchling\neditables\n' | compile build - "$@"
compile dev pyproject.toml --extra dev "$@"
compile core pyproject.toml --constraints requirements/dev.lock "$@"
compile voice pyproject.toml --extra voice --constraints requirements/dev.lock "$@"

# Model servers of other projects.
mkdir -p requirements/servers
echo dasllama | compile servers/dasllama - "$@"

# Clients of other projects, each in an environment of its own; they need not agree with us, nor with each other.
mkdir -p requirements/clients
for client in 'openai[realtime]' openai-agents 'pipecat-ai[openai]' 'livekit-agents[openai]'; do
  echo "$client" | compile "clients/${client%%\[*}" - "$@"
done
