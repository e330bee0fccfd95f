# Only Go is required: tools are installed from the Go module proxy into .bin.
# `make` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help

BIN := $(CURDIR)/.bin

# Versions of the tools.
GOLANGCI_LINT := $(BIN)/golangci-lint-v2.15.0
CONTROLLER_GEN := $(BIN)/controller-gen-v0.23.0
HELM := $(BIN)/helm-v3.22.0
BENCHSTAT := $(BIN)/benchstat-v0.0.0-20260908200009-22c9c6c9d4da
CYCLONEDX := $(BIN)/cyclonedx-gomod-v1.10.0
GOTESTSUM := $(BIN)/gotestsum-v1.13.0

$(GOLANGCI_LINT): PKG := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(CONTROLLER_GEN): PKG := sigs.k8s.io/controller-tools/cmd/controller-gen
$(HELM): PKG := helm.sh/helm/v3/cmd/helm
$(BENCHSTAT): PKG := golang.org/x/perf/cmd/benchstat
$(CYCLONEDX): PKG := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
$(GOTESTSUM): PKG := gotest.tools/gotestsum

# The name of the binary contains its version, so that a new version is installed.
$(GOLANGCI_LINT) $(CONTROLLER_GEN) $(HELM) $(BENCHSTAT) $(CYCLONEDX) $(GOTESTSUM):
	@mkdir -p $(BIN)
	GOBIN=$(BIN) go install $(PKG)@$(patsubst $(notdir $(PKG))-%,%,$(notdir $@))
	@mv $(BIN)/$(notdir $(PKG)) $@

# Everything else is built as a release is: without cgo, without the names of folders, and without
# the traces of gRPC, which nothing shows and which bring golang.org/x/net/trace and html/template.
# So that all targets share what is compiled, which is most of the time with an empty cache.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(filter-out -trimpath -tags=%,$(shell go env GOFLAGS)) -trimpath -tags=grpcnotrace)

# -count=1: tests that run the binary depend on more than the test cache knows.
# -vet=off: the linters include all of vet.
GOTEST := go test -count=1 -vet=off -timeout 30m

# Runs tests with one pool of API servers, and reports; see go doc ./demo/testrun.
TESTRUN := GOTESTSUM=$(GOTESTSUM) go run ./demo/testrun

# What only test-all runs, and the one of them that test-shard runs: a name or a number.
SHARDS := wire wire-traffic wire-trust clusters serve proof osm demo soak fuzz kind
SHARD ?=

# The fuzz targets, and how long each one runs. Inputs that once failed are in the
# testdata of the target, and also run as plain tests.
FUZZED = $(shell grep -rE --include='*_test.go' '^func Fuzz[A-Za-z]+' certs cmd demo engine tui | sed -E 's|^(.*)/[^/]*:func (Fuzz[A-Za-z]+).*|\1:\2|' | sort)
FUZZTIME ?= 20s

# How long make soak makes faults; the shard soak does it for a minute. MESHCTL_TEST_SEED repeats a run.
SOAK ?= 10m

# How often each benchmark runs.
COUNT ?= 1

# Packages with golden files; they take -update.
GOLDEN := ./engine/offline ./cmd/demo ./cmd/describe ./cmd/install ./cmd/top ./cmd/trust ./cmd ./tui

# The version of an image or a release, where it is not that of the commit; and the
# platforms, where not all are wanted: PLATFORMS=linux/amd64,linux/arm64.
VERSION ?=
PLATFORMS ?=
RELEASE := go -C .release run . -version '$(VERSION)' -platforms '$(PLATFORMS)'

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build ./meshctl, as for a release
	@# Without symbols and debugging data, it is 81 MB instead of 114; stack traces stay.
	go build -ldflags '-s -w' -o meshctl .

.PHONY: image
image: ## Build the container image in dist/, and load it into docker if its engine runs
	@# No engine is needed: dist/image is an OCI layout of all platforms.
	$(RELEASE) image
	@if docker info >/dev/null 2>&1; then \
		docker load -i dist/meshctl_image_linux_$$(docker version -f '{{.Server.Arch}}').tar; \
	else \
		echo "no docker engine runs here: load dist/meshctl_image_linux_ARCH.tar, or push dist/image"; \
	fi

.PHONY: release
release: $(CYCLONEDX) ## Build the archives, checksums, SBOMs and krew manifest of a release in dist/
	$(RELEASE) -cyclonedx-gomod $(CYCLONEDX) archives

.PHONY: demo
demo: build ## Start the demo: two clusters with Istio on this machine, joined
	./meshctl demo up

.PHONY: demo-down
demo-down: build ## Stop the demo
	./meshctl demo down

.PHONY: sandbox
sandbox: build ## Build Kubernetes, Istio and the proxies' agent for the demo and the tests (about 8 minutes, once)
	./meshctl demo prepare

.PHONY: test
test: sandbox $(HELM) $(GOTESTSUM) ## Run what every change must pass, with real API servers, clusters and proxies
	$(TESTRUN) quick
	cd .release && $(GOTEST) ./...

.PHONY: test-shard
test-shard: sandbox $(GOTESTSUM) ## Run one of the shards of what test leaves out: SHARD=NAME or its number
	$(TESTRUN) shard $(SHARD)

.PHONY: test-all
test-all: ## Run everything there is: test and all shards
	@# All of it, also after a failure: it takes two hours.
	@failed=; $(MAKE) --no-print-directory test || failed=' test'; \
	for shard in $(SHARDS); do $(MAKE) --no-print-directory test-shard SHARD=$$shard || failed="$$failed $$shard"; done; \
	if [ -n "$$failed" ]; then echo "test-all: failed:$$failed"; exit 1; fi; echo "test-all: all passed in $$SECONDS s"

.PHONY: test-kind
test-kind: sandbox $(GOTESTSUM) ## Run the demo in kind clusters, and test it there; needs a Docker engine, or Debian and root
	@# Without a registry: the images of nodes and of Istio are built, about 15 minutes once.
	GOTESTSUM=$(GOTESTSUM) demo/nodeimage/run.sh go run ./demo/testrun kind

.PHONY: soak
soak: sandbox ## Edit two clusters and make faults for SOAK
	MESHCTL_TEST_SHARD=soak SOAK=$(SOAK) SOAK_WITHIN=10s go test -run '^TestSoak$$' -count=1 -timeout 60m -v ./cmd/e2e

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME
	@set -e; for target in $(FUZZED); do \
		echo "fuzz $$target for $(FUZZTIME)"; \
		go test -vet=off -run '^$$' -fuzz "^$${target#*:}$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./$${target%:*}; \
	done

.PHONY: bench
bench: $(BENCHSTAT) ## Run the benchmarks of the engine; use COUNT=10 to compare
	go test -run '^$$' -bench . -skip '^BenchmarkFleet' -benchmem -count $(COUNT) -timeout 60m ./engine ./engine/discovery ./engine/reading ./engine/telemetry ./engine/traffic ./tui | tee bench.out
	$(BENCHSTAT) bench.out

.PHONY: bench-fleet
bench-fleet: ## Measure translation and edits with up to 1,000 clusters; the largest needs 14 GB
	go test -run '^$$' -bench '^BenchmarkFleet' -benchtime 3x -count $(COUNT) -timeout 60m ./engine

.PHONY: bench-relay
bench-relay: sandbox ## Measure a hub with AGENTS=500 agents, and with FLEET=1000
	go test -run '^$$' -bench '^BenchmarkRelay' -benchtime 1x -timeout 60m -v ./cmd/e2e/relay

.PHONY: bench-live
bench-live: sandbox ## Measure convergence, edits and writes per second on real API servers
	go test -run '^$$' -bench '^BenchmarkLive' -benchtime 1x -timeout 60m -v ./cmd/e2e/... ./engine/apply | tee bench-live.out

.PHONY: golden
golden: ## Rewrite the golden files
	go test -vet=off $(GOLDEN) -run 'TestGolden|TestScript' -update
	$(MAKE) --no-print-directory screens

.PHONY: screens
screens: ## Rewrite the dashboard's screen in README.md
	go test -vet=off ./tui -run TestScreensInReadme -update

.PHONY: generate
generate: $(CONTROLLER_GEN) ## Generate deep copies, CRDs, JSON Schemas and the archives of the sandbox's sources
	$(CONTROLLER_GEN) object paths=./engine/api/...
	$(CONTROLLER_GEN) crd:allowDangerousTypes=true paths=./engine/api/... output:crd:dir=engine/api/crds
	go generate ./demo/...
	go run ./cmd/schema cmd/help/schemas

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters of .golangci.yml
	$(GOLANGCI_LINT) run ./...
	cd .release && $(GOLANGCI_LINT) run -c ../.golangci.yml ./...

.PHONY: supply
supply: ## Fail if the binary has modules that nobody maintains, or is too big
	@# No network is needed beyond that of the build.
	$(RELEASE) supply

.PHONY: verify
verify: generate golden supply ## Fail if a generated file differs from the committed one, or if supply does
	go mod tidy -diff
	go -C .release mod tidy -diff
	@if [ -n "$$(git status --porcelain)" ]; then \
		git status --short; git --no-pager diff; \
		echo "verify: the tree is dirty; commit what 'make generate golden' writes"; exit 1; \
	fi

.PHONY: clean
clean: ## Remove the binaries in this folder; the sandbox in the cache folder stays
	rm -rf $(BIN) dist meshctl bench.out bench-live.out
