# The words of the lab. It runs as root on one Linux machine; docs/lab.md.

KPR_LAB := bin/kpr-lab

# What every change has to pass on a real cluster; the rest of e2e takes longer.
CORE := TestHealthy|TestStates|TestAuditLog|TestNothingIsLeft|TestPending|TestSnapshot

.PHONY: $(KPR_LAB)
$(KPR_LAB):
	@cd test/lab && CGO_ENABLED=0 go build -trimpath -o $(CURDIR)/$(KPR_LAB) ./cmd/kpr-lab

.PHONY: lab-doctor
lab-doctor: $(KPR_LAB) ## say what this machine lacks for the lab
	@$(KPR_LAB) doctor

.PHONY: lab-build
lab-build: $(KPR_LAB) ## build Kubernetes, Cilium and images into the lab's cache
	$(KPR_LAB) build

.PHONY: lab-up
lab-up: $(KPR_LAB) ## raise the lab, or again from scratch; STATE=kpr
	$(KPR_LAB) up $(or $(STATE),kpr)

.PHONY: lab-down
lab-down: $(KPR_LAB) ## remove all of the lab but its cache
	$(KPR_LAB) down

.PHONY: lab-status
lab-status: $(KPR_LAB) ## say what of the lab runs
	@$(KPR_LAB) status

.PHONY: lab-state
lab-state: $(KPR_LAB) ## bring the lab into STATE=…; without one: list the states
	@$(KPR_LAB) $(if $(STATE),state $(STATE),states)

.PHONY: e2e-core
e2e-core: build $(KPR_LAB) ## run what .ci/run runs of them: healthy, damaged map, agent down, residue
	go test -count=1 -tags e2e -timeout 38m -v -run '$(CORE)' ./test/e2e

.PHONY: e2e
e2e: build $(KPR_LAB) ## run the end-to-end tests on the lab that take minutes
	go test -count=1 -tags e2e -timeout 40m -v ./test/e2e

.PHONY: e2e-full
e2e-full: build $(KPR_LAB) ## run every end-to-end test, each state of the lab included
	KPR_E2E=full go test -count=1 -tags e2e -timeout 120m -v ./test/e2e

.PHONY: fixtures
fixtures: build $(KPR_LAB) ## record the lab's states as snapshots into test/fixtures
	go test -count=1 -tags e2e -timeout 90m -v -run 'TestRecordFixtures' ./test/e2e -args -record
