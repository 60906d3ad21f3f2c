# The words of this repository. `make help` lists them.

BIN     := bin/kubectl-kpr
LINT    := bin/tools/golangci-lint
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS := -s -w $(if $(VERSION),-X github.com/kubectl-kpr/kubectl-kpr/internal/version.release=$(VERSION))
PHASE   := scripts/phase

.DEFAULT_GOAL := help

.PHONY: help
help: ## list these words
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/kubectl-kpr: static, trimmed, stamped with the version
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/kubectl-kpr

# The race detector is the only thing here that needs a C compiler.
.PHONY: test
test: ## vet, compile and test every package, with the race detector
	@$(PHASE) vet go vet ./...
	@$(PHASE) build go build ./...
	@$(PHASE) test env CGO_ENABLED=1 go test -race ./...

.PHONY: lint
lint: $(LINT) ## run golangci-lint, built from tools/lint on first use
	$(LINT) run ./...

$(LINT): tools/lint/go.mod tools/lint/go.sum
	cd tools/lint && CGO_ENABLED=0 go build -trimpath -o $(CURDIR)/$(LINT) github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $(LINT)

.PHONY: gen
gen: ## write again whatever is generated from values
	go generate ./...

# Exit code 2 is "findings" and 3 is "something could not be seen": results of
# a run, not failures of it.
.PHONY: demo
demo: build ## find a damaged BPF map on a recorded cluster, and look at a sound one
	@scripts/demo $(BIN)

# The symbols that size counts are stripped from the real binary.
.PHONY: size
size: build ## say how big the binary is, and which modules make it so
	@CGO_ENABLED=0 go build -trimpath -o $(BIN).symbols ./cmd/kubectl-kpr
	@cd tools/size && go run . -top 10 -stripped $(CURDIR)/$(BIN) $(CURDIR)/$(BIN).symbols
	@rm -f $(BIN).symbols

# Ten minutes, and as good as nothing else should run beside it.
.PHONY: scale
scale: build ## measure against simulated clusters, and keep the table in docs/performance.md
	go run ./test/scale table -plugin $(BIN) -o docs/performance.md

include test/lab/lab.mk
