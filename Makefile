# Every target needs Go and make; test needs Node, a C compiler, zsh and fish too, test-browser Node and Chromium.
# CI is .ci/run.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
DATA    ?= ./data
IMAGE   ?= spool
FUZZTIME ?= 10s
DURATION ?= 1m
TIMES   ?= 5
TOOL    := go tool -modfile=tools.mod

.DEFAULT_GOAL := help
.PHONY: help build run demo test test-litestream test-browser drill faults soak upgrade-demo fuzz bench bench-peers bench-cluster cluster-demo cluster-matrix docs packages lint fmt vet staticcheck vulncheck fix reference tidy check image clean

help: ## Print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build bin/spool, a static binary
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/spool ./cmd/spool

run: build ## Run the buffer on ./data (DATA=DIR for another folder)
	bin/spool serve --data $(DATA)

demo: ## Kill an agent and the buffer in mid-answer, and lose nothing; no key needed
	go run ./test/demo

test: ## Run every test with the race detector
	go test -race -shuffle=on -timeout 20m ./...
	cd test/sdk/go && go test -shuffle=on -timeout 10m ./... # a module of its own, for the SDKs' dependencies
	cd test/dashboards && go test -shuffle=on ./... # so too, for PromQL's parser

test-litestream: ## Have Litestream follow a busy log, and restore what it has
	cd test/litestream && go test -count=1 -timeout 10m ./... # a module of its own, for Litestream's dependencies

test-browser: ## Read streams, and the console, with a real Chromium, /usr/bin/chromium
	go vet -tags browser ./test/browser
	mkdir -p test/artifacts # where its pictures stay
	go test -tags browser -count=1 -timeout 15m -artifacts -outputdir $(CURDIR)/test/artifacts ./test/browser

drill: ## Stage eight faults of a provider and print what followed
	@cd test/drill && go test -count=1 # in its own folder, so that go test shows what it prints

faults: ## Break the log in every way, and print what was promised and what was seen
	@cd test/faults && go test -count=1 -timeout 20m # in its own folder, as above

soak: ## Keep the service busy for DURATION (1m), and see whether all returns to where it began (SOAK="--cpu 0.8" for flags)
	go run ./test/soak --duration $(DURATION) $(SOAK)

upgrade-demo: ## Upgrade five times under 100 live streams, and count who noticed (UPGRADE="--streams 20" for flags)
	@go run ./test/upgrade $(UPGRADE)

fuzz: ## Run every fuzz target for FUZZTIME each (FUZZTIME=1h; 10s)
	@.ci/fuzz $(FUZZTIME)

bench: ## Measure this machine (BENCH="--quick --only ttfb" for flags)
	go run ./test/bench $(BENCH)

bench-peers: ## Measure what a user would pick instead; needs Node and redis-server
	go run ./test/bench peers $(BENCH)

lint: fmt vet staticcheck vulncheck fix tidy ## Run every static check

fmt: ## … gofmt
	@files=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); \
	if [ -n "$$files" ]; then echo "not formatted:"; echo "$$files"; exit 1; fi

vet: ## … go vet
	go vet ./...

staticcheck: ## … staticcheck
	$(TOOL) staticcheck ./...

vulncheck: ## … govulncheck, with a database built from a Go module
	.ci/vulncheck

fix: ## … go fix has nothing to modernize
	go fix -diff ./...

reference: ## Write deploy/spool.yaml anew from the source
	go run ./cmd/spool config reference > deploy/spool.yaml.new && mv deploy/spool.yaml.new deploy/spool.yaml

tidy: ## … go.mod is tidy
	go mod tidy -diff

check: build ## Verify the stored invariants of DATA (./data)
	bin/spool check $(DATA)

bench-cluster: ## Measure three NATS servers and three nodes on this machine's loopback
	go run ./test/cluster bench $(BENCH)

cluster-demo: ## End servers and nodes of a cluster while answers come, and count what is lost
	go run ./test/cluster

cluster-matrix: ## … each way TIMES times (TIMES=5)
	go run ./test/cluster matrix --times $(TIMES)

docs: ## Build the site of docs/ into dist/site
	go run ./test/docs dist/site

packages: ## Render and lint what is in deploy/, and build a release twice
	cd test/packages && go test -count=1 -vet=off ./... # a module of its own, for the dependencies of Helm, which vet would read too
	.ci/release --check

image: ## Build the container image (IMAGE=NAME)
	docker build --build-arg VERSION=$(VERSION) -t $(IMAGE) .

clean: ## Remove what was built; data stays
	rm -rf bin dist test/artifacts
