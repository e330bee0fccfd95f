# What the scripts of this folder share; sourced, not run.
# shellcheck shell=bash disable=SC2034 # used by those that source it

# CACHE is where everything that is built or runs here is kept.
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/meshctl
# NODE_VERSION and ISTIO_VERSION are the versions of demo/sandbox/go.mod.
NODE_VERSION=v1.36.3
ISTIO_VERSION=1.31.1
NODE_IMAGE=kindest/node:$NODE_VERSION-meshctl
# Nodes get a network of their own, apart from kind clusters of another user.
export KIND_EXPERIMENTAL_DOCKER_NETWORK=${KIND_EXPERIMENTAL_DOCKER_NETWORK:-meshctl-kind}

say() { echo "$(date -u +%H:%M:%S) $*" >&2; }

fail() {
  echo "nodeimage: $*" >&2
  exit 1
}

# stage NAME COMMAND... runs a command and says how long it took.
stage() {
  local name=$1 begin=$SECONDS
  shift
  "$@"
  say "$name: $((SECONDS - begin)) s"
}

# wait_for SECONDS COMMAND... repeats a command until it succeeds.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.5
  done
}
