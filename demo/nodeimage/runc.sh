#!/usr/bin/env bash
# runc.sh is a container runtime for Docker: runc, on a machine where not even root
# has CAP_SYS_RESOURCE. It takes out of what is to be run what runc could not give:
# that capability, resource limits, and a protection from the kernel's killer of
# processes.
set -euo pipefail

# bounded FILE PATH edits the process at a path of a JSON file.
bounded() {
  [ -f "$1" ] || return 0
  jq "$2 |= ((if .capabilities then .capabilities |= map_values(map(select(. != \"CAP_SYS_RESOURCE\"))) else . end)
    | del(.rlimits) | if (.oomScoreAdj // 0) < 0 then del(.oomScoreAdj) else . end)" "$1" >"$1.bounded"
  cat "$1.bounded" >"$1" # it keeps the owner and the mode
  rm -f "$1.bounded"
}

previous=
for argument in "$@"; do
  case $previous in
  --bundle | -b) bounded "$argument/config.json" .process ;;
  --process | -p) bounded "$argument" . ;;
  esac
  previous=$argument
done
exec runc "$@"
