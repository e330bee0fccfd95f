#!/usr/bin/env bash
# run.sh runs a command with a Docker daemon that has the images of build.sh, and
# ends what it has started:
#
#   demo/nodeimage/run.sh COMMAND...
#
# The command finds the name of the node image in MESHCTL_NODE_IMAGE.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/lib.sh"

STARTED=
LISTED=
# nodes lists those of a demo, and no others of the user.
nodes() {
  local cluster
  for cluster in cluster-1 cluster-2; do
    docker ps --all --quiet --filter "label=io.x-k8s.kind.cluster=meshctl-$cluster"
  done | sort
}

finish() {
  local result=$?
  trap - EXIT INT TERM
  # What a command that was killed has left.
  [ -z "$LISTED" ] || comm -13 <(echo "$BEFORE") <(nodes) | xargs --no-run-if-empty docker rm --force --volumes >/dev/null
  [ -z "$STARTED" ] || "$HERE/docker.sh" stop || result=1
  exit "$result"
}
trap finish EXIT
trap 'exit 130' INT TERM

"$HERE/docker.sh" status >/dev/null 2>&1 || STARTED=yes
engine=$("$HERE/docker.sh" start) # eval would hide that it failed
eval "$engine"
BEFORE=$(nodes)
LISTED=yes
stage "images" "$HERE/build.sh" >/dev/null
export MESHCTL_NODE_IMAGE=$NODE_IMAGE
stage "$*" "$@"
