#!/usr/bin/env bash
# docker.sh starts a Docker daemon that can run kind nodes on a machine that has
# none, and ends it without traces.
#
#   eval "$(demo/nodeimage/docker.sh start)"   # prints export DOCKER_HOST=...
#   demo/nodeimage/docker.sh status            # says what runs; fails if nothing does
#   demo/nodeimage/docker.sh stop              # ends it, and every container in it
#
# It needs Debian, root and Debian's packages. A daemon that runs already is used
# instead if it can run privileged containers, and is never ended or changed. The
# daemon of this script has its data, socket, configuration and process id in
# $XDG_CACHE_HOME/meshctl/docker, and no default bridge; images stay there for the
# next start.
#
# stop sets back what the daemon and kubelets change on the machine: sysctls,
# packet forwarding and the daemon's chains in iptables.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/lib.sh"

STATE=$CACHE/docker
SOCKET=$STATE/docker.sock
PIDFILE=$STATE/dockerd.pid
# Not in STATE, as the paths of sockets must be short.
EXEC_ROOT=/run/meshctl-docker-$(echo "$STATE" | sha256sum | cut -c 1-8)
# Changed by dockerd (the last one) and by the kubelets of nodes.
SYSCTLS="kernel.panic kernel.panic_on_oops vm.overcommit_memory vm.panic_on_oom kernel.keys.root_maxkeys kernel.keys.root_maxbytes net.ipv4.ip_forward"

# ours says whether the daemon of this script runs. The process id alone could be
# that of another process by now.
ours() {
  local pid
  pid=$(cat "$PIDFILE" 2>/dev/null) || return 1
  tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF -- "--data-root=$STATE/data"
}

answers() { docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

# privileged tries a container of one program that does nothing, in a network as nodes have it.
privileged() {
  local dir result=0
  dir=$(mktemp -d)
  echo 'int main(void) { return 0; }' | gcc -static -x c -o "$dir/true" - &&
    tar -C "$dir" -c true | docker import - meshctl.local/true:latest >/dev/null &&
    { docker network create meshctl-true && docker run --rm --privileged --network=meshctl-true meshctl.local/true:latest /true; } >"$dir/out" 2>&1 || result=1
  [ "$result" = 0 ] || cat "$dir/out" >&2
  docker network rm meshctl-true >/dev/null 2>&1 || true
  docker rmi meshctl.local/true:latest >/dev/null 2>&1 || true
  rm -rf "$dir"
  return "$result"
}

install_packages() {
  local missing=() command package
  while read -r command package; do
    command -v "$command" >/dev/null || missing+=("$package")
  done <<'END'
dockerd docker.io
docker docker.io
debootstrap debootstrap
iptables iptables
jq jq
gcc gcc
END
  [ ${#missing[@]} = 0 ] && return
  [ "$(id -u)" = 0 ] || fail "installing ${missing[*]}: not root; install these packages, or run this as root"
  say "installing ${missing[*]}"
  # A service of the packages must not start: its daemon would use the machine's folders.
  local policy=/usr/sbin/policy-rc.d created=
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    created=yes
  fi
  local result=0
  { DEBIAN_FRONTEND=noninteractive apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >&2 || result=$?
  [ -z "$created" ] || rm -f "$policy"
  [ "$result" = 0 ] || fail "installing ${missing[*]}: apt-get failed; see above"
}

# cap_sys_resource says whether this process may give CAP_SYS_RESOURCE (24) to others.
cap_sys_resource() {
  local bounding
  bounding=$(sed -n 's/^CapBnd:[[:space:]]*//p' /proc/self/status)
  (((0x$bounding >> 24) & 1))
}

configuration() {
  if cap_sys_resource; then
    echo '{}'
    return
  fi
  # kind asks for --privileged and names no runtime, so it has to be the default one.
  jq -n --arg path "$HERE/runc.sh" '{"default-runtime": "bounded", "runtimes": {"bounded": {"path": $path}}}'
}

start() {
  if ! ours && command -v docker >/dev/null && answers; then
    install_packages # debootstrap and gcc
    privileged || fail "the Docker daemon that runs here cannot run privileged containers in a network of their own; end it, or set DOCKER_HOST to another"
    say "a Docker daemon runs already; it is used"
    [ -z "${DOCKER_HOST:-}" ] || echo "export DOCKER_HOST=$DOCKER_HOST"
    return
  fi
  export DOCKER_HOST=unix://$SOCKET
  if ! ours; then
    [ "$(id -u)" = 0 ] || fail "starting dockerd: not root; run this as root, or start a Docker daemon"
    install_packages
    mkdir -p "$STATE"
    configuration >"$STATE/daemon.json"
    # Of two starts without a stop only the first sees the machine's own settings.
    if [ ! -e "$STATE/sysctls" ]; then
      # shellcheck disable=SC2086 # a list of words
      sysctl -e $SYSCTLS >"$STATE/sysctls.new"
      iptables -S FORWARD 2>/dev/null | sed -n 's/^-P FORWARD //p' >"$STATE/forward"
      mv "$STATE/sysctls.new" "$STATE/sysctls"
    fi
    rm -f "$PIDFILE"
    setsid nohup dockerd --host="unix://$SOCKET" --data-root="$STATE/data" --exec-root="$EXEC_ROOT" \
      --pidfile="$PIDFILE" --config-file="$STATE/daemon.json" --bridge=none \
      >"$STATE/dockerd.log" 2>&1 </dev/null &
  fi
  wait_for 60 answers || fail "dockerd does not answer on $SOCKET: $(tail -n 3 "$STATE/dockerd.log"); the rest is in $STATE/dockerd.log"
  privileged || fail "Docker cannot run privileged containers in a network of their own on this machine; see above and $STATE/dockerd.log"
  echo "export DOCKER_HOST=$DOCKER_HOST"
}

status() {
  if ours; then
    echo "dockerd runs with process id $(cat "$PIDFILE"); DOCKER_HOST=unix://$SOCKET"
    DOCKER_HOST=unix://$SOCKET docker ps --all --format '{{.Names}}: {{.Status}}'
  elif command -v docker >/dev/null && answers; then
    echo "a Docker daemon runs that docker.sh did not start"
  else
    echo "no Docker daemon runs"
    return 1
  fi
}

gone() { ! ours; }

# unchain removes what a daemon leaves in iptables.
unchain() {
  local command table chain rule
  for command in iptables ip6tables; do
    for table in filter nat; do
      # -S quotes rules for a shell, and the rules of a chain that goes need no deletion.
      "$command" -t "$table" -S | sed -nE '/^-A DOCKER/d; s/^-A (.*DOCKER.*)/-D \1/p' | while read -r rule; do
        eval "$command -t $table $rule"
      done
      for chain in $("$command" -t "$table" -S | sed -n 's/^-N \(DOCKER[^ ]*\)$/\1/p'); do
        "$command" -t "$table" -F "$chain"
      done
      for chain in $("$command" -t "$table" -S | sed -n 's/^-N \(DOCKER[^ ]*\)$/\1/p'); do
        "$command" -t "$table" -X "$chain" || say "iptables: the chain $chain of the table $table stays; a rule still uses it"
      done
    done
  done
  [ ! -s "$STATE/forward" ] || iptables -P FORWARD "$(cat "$STATE/forward")"
}

stop() {
  if ours; then
    local pid bridge
    pid=$(cat "$PIDFILE")
    # Their networks, so that no bridge stays.
    DOCKER_HOST=unix://$SOCKET docker ps -aq | xargs -r env DOCKER_HOST="unix://$SOCKET" docker rm -f -v >/dev/null
    for bridge in $(DOCKER_HOST=unix://$SOCKET docker network ls -q --filter type=custom); do
      DOCKER_HOST=unix://$SOCKET docker network rm "$bridge" >/dev/null
    done
    kill -TERM "$pid"
    wait_for 60 gone || fail "dockerd (process $pid) has not ended in 60 s; see $STATE/dockerd.log"
  fi
  if [ -e "$STATE/sysctls" ]; then
    unchain
    sysctl -q -p "$STATE/sysctls"
    rm -rf --one-file-system "$EXEC_ROOT"
    rm -f "$STATE/sysctls" "$STATE/forward"
  fi
}

case ${1:-} in
start | stop | status) "$1" ;;
*) fail "usage: docker.sh start|stop|status" ;;
esac
