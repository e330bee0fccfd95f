# Everything is built with Go alone: tools come from the Go module proxy into .bin.
# `make` lists what can be made.

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help

BIN := $(CURDIR)/.bin

# Versions of the tools; a new one is a change like any other.
GOLANGCI_LINT := $(BIN)/golangci-lint-v2.15.0
CONTROLLER_GEN := $(BIN)/controller-gen-v0.23.0
BENCHSTAT := $(BIN)/benchstat-v0.0.0-20260908200009-22c9c6c9d4da

$(GOLANGCI_LINT): PKG := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(CONTROLLER_GEN): PKG := sigs.k8s.io/controller-tools/cmd/controller-gen
$(BENCHSTAT): PKG := golang.org/x/perf/cmd/benchstat

# The binary bears its version in its name, so that a new version is built and
# an old one is not taken for it.
$(GOLANGCI_LINT) $(CONTROLLER_GEN) $(BENCHSTAT):
	@mkdir -p $(BIN)
	GOBIN=$(BIN) go install $(PKG)@$(patsubst $(notdir $(PKG))-%,%,$(notdir $@))
	@mv $(BIN)/$(notdir $(PKG)) $@

# Packages where goroutines share data: these are tested with the race detector.
# It is left out elsewhere, because it makes clusters and scripts slow.
RACY := ./cmd/cmdutil/... ./demo/proc/... ./engine/apply/... ./engine/cluster/... ./engine/serve/... ./engine/watch/...
# The detector needs a C compiler; without one, Go turns cgo off.
RACE := $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# What is fuzzed, and for how long each. Inputs that once failed are in testdata
# beside the target, and run as plain tests, too.
FUZZED := engine:FuzzTranslate engine/inventory:FuzzSelectors engine/offline:FuzzLoadPolicies
FUZZTIME ?= 30s

# How often each benchmark runs.
COUNT ?= 1

# Packages with golden files; they take -update.
GOLDEN := ./engine/offline ./cmd/describe ./cmd ./tui

.PHONY: help
help: ## List what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build ./meshctl, as for a release
	@# Without symbols and debugging data, it is 70 MB instead of 100; stack traces stay.
	go build -trimpath -ldflags '-s -w' -o meshctl .

.PHONY: demo
demo: build ## See it work: two clusters with Istio on this machine, joined
	./meshctl demo up

.PHONY: demo-down
demo-down: build ## End the demo
	./meshctl demo down

.PHONY: sandbox
sandbox: build ## Build Kubernetes, Istio and Open Service Mesh for the demo and the tests (some 13 minutes, once)
	./meshctl demo prepare --osm

.PHONY: test
test: sandbox ## Unit tests, golden cases, layering, and end to end on real API servers
	@# -count=1: what runs the binary depends on more than Go's cache of results knows.
	go test $(RACE) -count=1 -timeout 30m $(RACY)
	go test -count=1 -timeout 30m $$(go list ./... | grep -vxF -f <(go list $(RACY)))
	$(MAKE) fuzz

.PHONY: fuzz
fuzz: ## Look for inputs that break the engine, FUZZTIME each
	@set -e; for target in $(FUZZED); do \
		echo "fuzz $$target for $(FUZZTIME)"; \
		go test -run '^$$' -fuzz "^$${target#*:}$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./$${target%:*}; \
	done

.PHONY: bench
bench: $(BENCHSTAT) ## Benchmarks of the engine; COUNT=10 gives figures to compare
	go test -run '^$$' -bench . -benchmem -count $(COUNT) -timeout 60m ./engine ./engine/discovery ./tui | tee bench.out
	$(BENCHSTAT) bench.out

.PHONY: bench-live
bench-live: sandbox ## Seconds to converge, time of an edit and writes a second, on real API servers
	go test -run '^$$' -bench '^BenchmarkLive' -benchtime 1x -timeout 60m -v ./cmd/e2e ./engine/apply | tee bench-live.out

.PHONY: golden
golden: ## Rewrite the golden files
	go test $(GOLDEN) -run 'TestGolden|TestScript' -update
	$(MAKE) --no-print-directory screens

.PHONY: screens
screens: ## Rewrite the dashboard's screen in README.md
	go test ./tui -run TestScreensInReadme -update

.PHONY: generate
generate: $(CONTROLLER_GEN) ## Generate deep copies, CRDs and the archives of the sandbox's sources
	$(CONTROLLER_GEN) object paths=./engine/api/...
	$(CONTROLLER_GEN) crd:allowDangerousTypes=true paths=./engine/api/... output:crd:dir=engine/api/crds
	go generate ./demo/...

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters of .golangci.yml
	$(GOLANGCI_LINT) run ./...

.PHONY: verify
verify: generate golden ## Fail if anything generated is not what is committed
	go mod tidy -diff
	@if [ -n "$$(git status --porcelain)" ]; then \
		git status --short; git --no-pager diff; \
		echo "verify: the tree is dirty; commit what 'make generate golden' writes"; exit 1; \
	fi

.PHONY: clean
clean: ## Remove what was built here; the sandbox in your cache folder stays
	rm -rf $(BIN) meshctl bench.out bench-live.out
