# `make` lists the targets. CI runs `make test`, and so can you.

GO     ?= go
TOOL   := $(GO) tool -modfile=tools/go.mod
# Packages whose tests take longest come first: others run beside them, and nobody waits for one that began last.
LONG   := ./engine/store ./server ./server/redis
# The packages whose code runs on many goroutines at once.
RACY   := $(LONG) ./engine/... ./fabric/... ./cluster/... ./wire/... ./tenant/... ./server/... ./internal/...
KILLS  ?= 300
ROUNDS ?= 684
SEEDS  ?= 5000

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/ostro
	$(GO) build -o bin/ostro ./cmd/ostro

.PHONY: run
run: build ## run a server with its data in ./ostro-data
	bin/ostro server

.PHONY: test
test: lint unit race contrib e2e functions crash cluster ## everything that CI checks
	@if [ -n "$$CI" ] || fabric/verbs/softroce.sh --ready; then $(MAKE) --no-print-directory verbs; \
	else echo "verbs: skipped, as this machine lacks what it needs; CI runs it"; fi

.PHONY: lint
lint: ## formatting, go vet, staticcheck
	@unformatted=$$($(TOOL) gofumpt -l .); \
	if [ -n "$$unformatted" ]; then echo "run 'make format' for:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags invariants ./engine/... ./internal/...
	GOOS=wasip1 GOARCH=wasm $(GO) vet ./sdk/go
	$(TOOL) staticcheck ./...

.PHONY: format
format: ## format all Go files
	$(TOOL) gofumpt -w .

.PHONY: unit
unit: ## unit tests, the engine's also with its invariants compiled in
	$(GO) test -timeout 45m $(LONG) $$($(GO) list ./... | grep -v /test/)
	$(GO) test -timeout 45m -short -tags invariants ./engine/... ./internal/...

# Clusters of ./server have leases of real time: nothing else runs beside them.
.PHONY: race
race: ## unit tests under the race detector
	$(GO) test -timeout 45m -race -short ./server
	$(GO) test -timeout 45m -race -short $$($(GO) list $(RACY) | grep -v '/ostro/server$$')

# The binary is no input that the test cache knows of: -count=1.
.PHONY: e2e
e2e: ## the binary from outside, with redis-cli and go-redis
	$(GO) test -timeout 45m -count=1 ./test/e2e

# Compilers are no input that the test cache knows of, either.
.PHONY: functions
functions: ## SDKs, templates and examples of functions, with the compilers of their languages
	$(GO) test -timeout 45m -count=1 ./test/functions

.PHONY: crash
crash: ## kill the server a few times under load; nothing acknowledged may be lost
	$(GO) test -timeout 45m -count=1 ./test/crash

.PHONY: cluster
cluster: ## a cluster under load: nodes killed and stopped, networks cut, disks full; all answers must make sense
	$(GO) test -timeout 45m -count=1 ./test/harness ./test/linearize ./test/native ./test/nemesis

# Who asks for torture gets it: as in CI, what this machine lacks is an error, and nothing is skipped.
torture-cluster torture-migrate torture-steps: export CI = true

.PHONY: torture-cluster
torture-cluster: ## the same until KILLS=300 processes were killed, half of them beside cut networks and full disks; ARGS='-seed 7' repeats a run
	$(GO) test -count=1 ./test/nemesis -timeout 0 -v -run 'TortureOf(Processes|NetworksAndDisks)' -args -kills $(KILLS) $(ARGS)

.PHONY: torture-migrate
torture-migrate: torture-steps ## keys that move all the time, until half of KILLS=300 processes were killed meanwhile, and torture-steps
	$(GO) test -count=1 ./test/nemesis -timeout 0 -v -run TortureOfMigrations -args -kills $(KILLS) $(ARGS)

.PHONY: torture-steps
torture-steps: ## ROUNDS=684 migrations halted at every named step, where either side, both, the coordinator or etcd is killed, stopped, cut off or without room on its disk, or the two do not hear each other
	$(GO) test -count=1 ./test/nemesis -timeout 0 -v -run TortureOfSteps -args -rounds $(ROUNDS) $(ARGS)

# Modules of their own: ./... of the main module does not see them.
CONTRIB := contrib/pebble contrib/bbolt
.PHONY: contrib
contrib: ## lint and tests of the databases on groups, a few kills among them
	@for dir in $(CONTRIB); do echo "$$dir"; (cd $$dir && $(GO) vet ./... && \
	  $(GO) tool -modfile=../../tools/go.mod staticcheck ./... && $(GO) test -timeout 45m -count=1 ./...) || exit 1; done

.PHONY: contrib-torture
contrib-torture: ## their front ends, and replicas with them, killed KILLS=300 times
	@for dir in $(CONTRIB); do (cd $$dir && $(GO) test -count=1 ./internal/study -timeout 0 -v -kills $(KILLS)) || exit 1; done

.PHONY: torture
torture: ## the same for KILLS=300 kills
	$(GO) test -count=1 ./test/crash -timeout 0 -v -kills $(KILLS)

.PHONY: torture-groups
torture-groups: ## transactions on groups: SEEDS=5000 simulations, KILLS=300 rounds of SIGKILL
	$(GO) test -count=1 ./cluster/txn -timeout 0 -v -run 'WhateverDies|ProcessesAreKilled' -seeds $(SEEDS) -kills $(KILLS)

.PHONY: verbs
verbs: ## the fabric's suite on libibverbs, under Soft-RoCE in QEMU
	@mkdir -p bin
	$(GO) vet -tags verbs ./fabric/... ./cluster/group
	$(GO) test -tags verbs -c -o bin/verbs.test ./fabric/verbs
	fabric/verbs/softroce.sh bin/verbs.test -test.timeout 880s

.PHONY: verbs-groups
verbs-groups: ## groups by fan-out there, too
	@mkdir -p bin
	$(GO) test -tags verbs -c -o bin/group.test ./cluster/group
	fabric/verbs/softroce.sh bin/group.test -test.timeout 880s -test.run 'EachPrimitive|InFlightTakeEffect|MatchAModel|AReadSees|ADeadReplica|ReplicasRefuse'

.PHONY: fuzz
fuzz: ## every fuzz target for a little while
	@for target in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
	  for name in $$(grep -rhoE '^func Fuzz[A-Za-z0-9_]+' $$target | sed 's/^func //'); do \
	    echo "$$target $$name"; $(GO) test $$target -run '^$$' -fuzz "^$$name$$" -fuzztime 20s || exit 1; \
	  done; done

MODULES ?= 5000
SCRIPTS ?= 500000
.PHONY: fuzz-functions
fuzz-functions: ## MODULES=5000 random modules before and after metering, as many with random host calls, and SCRIPTS=500000 scripts of host calls; ARGS='-seed 7' repeats a run
	$(GO) test -count=1 ./tenant/extension/meter -timeout 0 -run 'MeteredModules|DamagedModules' -args -modules $(MODULES) $(ARGS)
	$(GO) test -count=1 ./tenant/extension -timeout 0 -run RandomHostCalls -args -modules $(MODULES) $(ARGS)
	$(GO) test -count=1 ./tenant/extension -timeout 0 -v -run RandomScripts -args -scripts $(SCRIPTS) $(ARGS)

.PHONY: clean
clean: ## remove what was built
	rm -rf bin
