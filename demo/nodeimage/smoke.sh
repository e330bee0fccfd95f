#!/usr/bin/env bash
# smoke.sh proves that the images work, in two kind clusters that it makes and
# deletes:
#
#   demo/nodeimage/smoke.sh          # both clusters, and Istio with bookinfo in the first
#   demo/nodeimage/smoke.sh bare     # only that nodes are ready and DNS answers
#
# It starts Docker (docker.sh) if nothing has, and ends that again. It takes the
# charts of Istio from the module that istiod is built from.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/lib.sh"
BIN=$HERE/../../.bin
HELM_VERSION=v3.22.0
CLUSTERS="meshctl-smoke-1 meshctl-smoke-2"

WORK=$(mktemp -d "${TMPDIR:-/tmp}/smoke-XXXXXX")
STARTED=
finish() {
  local result=$? cluster
  trap - EXIT INT TERM
  if [ "$result" != 0 ]; then
    say "failed; what runs:"
    for cluster in $CLUSTERS; do
      [ ! -e "$WORK/$cluster" ] || kube "$cluster" get pods --all-namespaces >&2 || true
    done
  fi
  for cluster in $CLUSTERS; do
    "$BIN/kind" delete cluster --quiet --name "$cluster" --kubeconfig "$WORK/$cluster" || true
  done
  rm -rf "$WORK"
  [ -z "$STARTED" ] || "$HERE/docker.sh" stop || result=1
  exit "$result"
}
trap finish EXIT
trap 'exit 130' INT TERM

kube() {
  local cluster=$1
  shift
  docker exec --interactive "$cluster-control-plane" kubectl --kubeconfig=/etc/kubernetes/admin.conf "$@"
}

# expect TEXT COMMAND... runs a command until it prints a text, at most 60 s.
expect() {
  local text=$1
  shift
  wait_for 60 prints "$text" "$@" || fail "$*: want $text in: $(cat "$WORK/out")"
}

prints() {
  local text=$1
  shift
  "$@" >"$WORK/out" 2>&1 || true
  grep -qF -- "$text" "$WORK/out"
}

tools() {
  mkdir -p "$BIN"
  tool kind sigs.k8s.io/kind "$KIND_VERSION" .
  tool helm helm.sh/helm/v3 "$HELM_VERSION" ./cmd/helm
}

# tool NAME MODULE VERSION PACKAGE installs a tool into .bin unless it is there.
tool() {
  go version -m "$BIN/$1" 2>/dev/null | grep -qP "\tmod\t\Q$2\E\t\Q$3\E(\t|$)" && return
  (cd "$BIN" && GOBIN=$PWD GOFLAGS='' nice -n 15 go install "$2${4#.}@$3")
}

create() {
  "$BIN/kind" create cluster --quiet --name "$1" --image "$NODE_IMAGE" --kubeconfig "$WORK/$1" --wait 300s
  [ "$(kube "$1" get nodes --output=jsonpath='{.items[*].status.conditions[?(@.type=="Ready")].status}')" = True ] ||
    fail "$1: the node is not ready"
}

# bare proves that pods start, and find services by DNS.
bare() {
  local cluster=$1
  kube "$cluster" --namespace=kube-system rollout status deployment/coredns --timeout=180s >/dev/null
  "$BIN/kind" load docker-image --quiet --name "$cluster" "$APP_IMAGE"
  # Two pods: of a service with two endpoints, rules in iptables choose at random.
  kube "$cluster" create deployment echo --image="$APP_IMAGE" --replicas=2 --port=9080 >/dev/null
  kube "$cluster" expose deployment echo --port=80 --target-port=9080 >/dev/null
  kube "$cluster" rollout status deployment/echo --timeout=120s >/dev/null
  expect '"host":"echo.default.svc.cluster.local"' kube "$cluster" exec deployment/echo -- /get http://echo.default.svc.cluster.local 10
  say "$cluster: 10 requests: $(grep -c '^200' "$WORK/out") with status 200"
}

charts() { echo "$(cd "$HERE/istio" && go list -m -f '{{.Dir}}' istio.io/istio)/manifests/charts"; }

install_istio() {
  local cluster=$1 charts
  charts=$(charts)
  "$HERE/build.sh" istiod proxy app >"$WORK/names"
  xargs "$BIN/kind" load docker-image --quiet --name "$cluster" <"$WORK/names"
  kube "$cluster" create namespace istio-system >/dev/null
  "$BIN/helm" template istio-base "$charts/base" --namespace=istio-system |
    kube "$cluster" apply --server-side --filename=- >/dev/null
  # The images' Envoy is without Istio's extensions: for metrics, metadata and ALPN.
  "$BIN/helm" template istiod "$charts/istio-control/istio-discovery" --namespace=istio-system \
    --set=global.hub=docker.io/istio --set="global.tag=$ISTIO_VERSION" \
    --set=telemetry.enabled=false --set-json='meshConfig.defaultProviders={"metrics":[]}' \
    --set-string=env.PILOT_ENABLE_METADATA_EXCHANGE=false --set-string=env.PILOT_ENABLE_ALPN_FILTER=false \
    --set=autoscaleEnabled=false --set=resources.requests.cpu=50m --set=resources.requests.memory=128Mi \
    --set=global.proxy.resources.requests.cpu=10m --set=global.proxy_init.resources.requests.cpu=10m |
    kube "$cluster" apply --server-side --filename=- >/dev/null
  kube "$cluster" --namespace=istio-system rollout status deployment/istiod --timeout=180s >/dev/null
}

# injected proves that sidecars are injected, and speak mTLS.
injected() {
  local cluster=$1
  kube "$cluster" apply --filename=- <"$HERE/../manifests/bookinfo-cluster-1.yaml" >/dev/null
  kube "$cluster" apply --filename=- >/dev/null <<'END'
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: strict, namespace: bookinfo}
spec: {mtls: {mode: STRICT}}
END
  kube "$cluster" --namespace=bookinfo wait --for=condition=Available deployment --all --timeout=300s >/dev/null
  # Only the caller's certificate says its name.
  expect 'URI=spiffe://cluster.local/ns/bookinfo/sa/bookinfo-productpage' \
    kube "$cluster" --namespace=bookinfo exec deployment/productpage-v1 --container=productpage -- /get http://reviews:9080/reviews/0 10
  say "$cluster: mTLS: $(grep -o 'URI=spiffe:[^"]*' "$WORK/out" | sort | uniq -c); answers of $(grep -o '"workload":"[^"]*"' "$WORK/out" | sort | uniq -c | tr -s ' \n' ' ')"
  # A caller without a sidecar is refused.
  expect 'connection reset by peer' kube "$cluster" exec deployment/echo -- /get http://reviews.bookinfo:9080/reviews/0
  say "$cluster: without a sidecar: $(cat "$WORK/out")"
}

# gateway proves that an east-west gateway passes connections from outside of the
# cluster to sidecars, by SNI.
gateway() {
  local from=$1 cluster=$2 charts address port
  charts=$(charts)
  # The chart names the image "auto", which istiod replaces; by then Kubernetes has
  # chosen to pull always, as for any image without a tag.
  "$BIN/helm" template istio-eastwestgateway "$charts/gateway" --namespace=istio-system \
    --set=labels.istio=eastwestgateway --set=networkGateway=network-1 --set-string=env.ISTIO_META_ROUTER_MODE=sni-dnat \
    --set=imagePullPolicy=IfNotPresent --set=service.type=NodePort --set=autoscaling.enabled=false --set=resources.requests.cpu=10m |
    kube "$cluster" --namespace=istio-system apply --server-side --filename=- >/dev/null
  kube "$cluster" apply --filename=- >/dev/null <<'END'
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: eastwest, namespace: istio-system}
spec:
  selector: {istio: eastwestgateway}
  servers:
  - port: {number: 15443, name: tls, protocol: TLS}
    tls: {mode: AUTO_PASSTHROUGH}
    hosts: ["*.local"]
END
  kube "$cluster" --namespace=istio-system rollout status deployment/istio-eastwestgateway --timeout=180s >/dev/null
  address=$(docker inspect --format '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "$cluster-control-plane")
  port=$(kube "$cluster" --namespace=istio-system get service istio-eastwestgateway --output='jsonpath={.spec.ports[?(@.port==15443)].nodePort}')
  # The certificate is the sidecar's: the gateway does not end TLS.
  expect 'URI:spiffe://cluster.local/ns/bookinfo/sa/bookinfo-reviews' docker exec "$from-control-plane" sh -c "
    openssl s_client -connect $address:$port -servername outbound_.9080_._.reviews.bookinfo.svc.cluster.local -alpn istio </dev/null 2>/dev/null |
      openssl x509 -noout -ext subjectAltName"
  say "$from: through the gateway of $cluster: $(tail -n 1 "$WORK/out")"
}

KIND_VERSION=$(sed -n 's/^KIND_VERSION=//p' "$HERE/node.sh")
"$HERE/docker.sh" status >/dev/null 2>&1 || STARTED=yes
eval "$("$HERE/docker.sh" start)"
stage "tools" tools
stage "images" "$HERE/build.sh" node app >/dev/null
for cluster in $CLUSTERS; do
  stage "$cluster: created" create "$cluster"
done
for cluster in $CLUSTERS; do
  stage "$cluster: pods and DNS" bare "$cluster"
done
if [ "${1:-}" != bare ]; then
  stage "Istio installed" install_istio meshctl-smoke-1
  stage "bookinfo with sidecars" injected meshctl-smoke-1
  stage "east-west gateway" gateway meshctl-smoke-2 meshctl-smoke-1
fi
say passed
