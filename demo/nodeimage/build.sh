#!/usr/bin/env bash
# build.sh builds the images of a kind cluster with Istio, on a machine with a Go
# module proxy, Debian's packages and PyPI, but without a container registry, and
# loads them into Docker.
#
#   eval "$(demo/nodeimage/docker.sh start)"
#   demo/nodeimage/build.sh                 # all images; prints their names
#   demo/nodeimage/build.sh node            # some: node, istiod, proxy
#   kind create cluster --image "$(demo/nodeimage/build.sh node)"
#
# Images are kept as files in $XDG_CACHE_HOME/meshctl/images, in folders named after
# a hash of what they are built from, so that they are built again only when that
# changes. Progress and times go to stderr.
#
#   docker.sh    the Docker daemon
#   build.sh     what is built when, and the cache
#   node.sh      the node image: Debian, containerd, Kubernetes, CoreDNS
#   mesh.sh      the images of istiod and the proxy
#   run.sh       runs a command with Docker and the images, and ends all of it
#   runc.sh      a container runtime for machines without CAP_SYS_RESOURCE
#   lib.sh       what the scripts share
#   kubernetes   a Go module: every Kubernetes program, and etcd, as one binary
#   runtime      a Go module: versions of containerd and CNI plugins
#   coredns      a Go module: CoreDNS with few plugins
#   istio        a Go module: the version of istiod and of the proxy's agent
#   files        what the node image has in addition to kind's own files
#
# What differs from kind's own node image: pods' addresses come from a static
# configuration, so a cluster has one node; no volumes are provisioned; crictl and
# file systems over a network are missing. What differs from Istio's images: Envoy is
# the project's own, without Istio's extensions, so istiod needs the settings of
# demo/kind/istio.go.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/lib.sh"
. "$HERE/node.sh"
. "$HERE/mesh.sh"

# Another project's flags must not change the builds; without cgo, most of the sandbox's
# packages are in the build cache.
export GOFLAGS='' GOWORK=off CGO_ENABLED=0

# go_build MODULE OUTPUT FLAGS... builds static binaries in a module of demo. The
# flags are those of demo/helper, so that packages are shared in the build cache.
go_build() {
  local module=$1 output=$2 linker=$3
  shift 3
  (cd "$HERE/../$module" && nice -n 15 go build -trimpath -buildvcs=false -ldflags "-s -w $linker" -o "$output" "$@") ||
    fail "building $module failed; see above"
}

# module_folder MODULE@VERSION prints the folder with the sources of a module.
module_folder() { go mod download -json "$1" | jq -er .Dir; }

# inputs NAME prints a hash of all that the image NAME is built from. Of what is not
# in this folder, versions are, which are in files that are hashed.
inputs() {
  local folders=("$HERE/lib.sh" "$HERE/build.sh")
  case $1 in
  node) folders+=("$HERE/node.sh" "$HERE/files" "$HERE/kubernetes" "$HERE/runtime" "$HERE/coredns") ;;
  istiod) folders+=("$HERE/mesh.sh" "$HERE/istio") ;;
  proxy) folders+=("$HERE/mesh.sh" "$HERE/node.sh" "$HERE/istio" "$HERE/../proxies/envoy.go") ;;
  esac
  {
    go version
    find "${folders[@]}" -type f -print0 | sort -z | xargs -0 sha256sum | awk '{print $1}'
  } | sha256sum | cut -c 1-16
}

# names NAME prints the names that an image has in Docker.
names() {
  case $1 in
  node) echo "$NODE_IMAGE" ;;
  istiod) echo "docker.io/istio/pilot:$ISTIO_VERSION" ;;
  proxy) echo "docker.io/istio/proxyv2:$ISTIO_VERSION" ;;
  *) fail "image $1: there is none of that name; want node, istiod or proxy" ;;
  esac
}

# import FOLDER NAME CHANGES... makes an image of one layer from a folder, labelled
# with the hash of its inputs.
import() {
  local folder=$1 name=$2 changes=("--change=LABEL meshctl.inputs=$HASH")
  shift 2
  local change
  for change in "$@"; do changes+=("--change=$change"); done
  tar -C "$folder" --sort=name --mtime=@0 --numeric-owner -c . | docker import "${changes[@]}" - "$name" >/dev/null
}

# loaded NAME says whether Docker has the image under all of its names, as it is now.
loaded() {
  local name
  for name in $(names "$1"); do
    [ "$(docker image inspect --format '{{index .Config.Labels "meshctl.inputs"}}' "$name" 2>/dev/null)" = "$HASH" ] || return 1
  done
}

# provide NAME has Docker have an image.
provide() {
  local name=$1 folder
  HASH=$(inputs "$name")
  folder=$CACHE/images/$HASH
  if loaded "$name"; then
    say "$name: Docker has it"
  elif [ -e "$folder/$name.tar" ]; then
    stage "$name: loading" docker load --quiet --input "$folder/$name.tar" >/dev/null
  else
    WORK=$(mktemp -d "${TMPDIR:-/tmp}/nodeimage-XXXXXX")
    stage "$name: building" "build_$name"
    mkdir -p "$folder"
    # shellcheck disable=SC2046 # several names
    stage "$name: saving" docker save --output "$folder/$name.tar.new" $(names "$name")
    mv "$folder/$name.tar.new" "$folder/$name.tar"
    prune "$name"
    clean
  fi
  names "$name"
}

# prune keeps only the newest file of an image.
prune() {
  find "$CACHE/images" -name "$1.tar" -not -path "$CACHE/images/$HASH/*" -delete
  find "$CACHE/images" -mindepth 1 -type d -empty -delete
  docker image prune --force >/dev/null
}

WORK=
clean() {
  [ -z "$WORK" ] || rm -rf --one-file-system "$WORK"
  WORK=
}
trap clean EXIT

docker version >/dev/null 2>&1 || fail "Docker does not answer; run docker.sh start, and export the DOCKER_HOST that it prints"
mkdir -p "$CACHE/images"
exec 9>"$CACHE/images/lock"
flock 9 # two builds at once would do the same
for wanted in "${@:-node istiod proxy}"; do
  for image in $wanted; do
    names "$image" >/dev/null
    provide "$image"
  done
done
