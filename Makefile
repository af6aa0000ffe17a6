# Setup and daily commands. `make help` lists them.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 5
# tests/conftest.py orders the modules. All tests of a module run in one process, so that its servers are started once.
DISTRIBUTED := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
DIST ?= dist
# A certificate authority of the organization, for example of a proxy that inspects TLS, is in the system's store.
export UV_SYSTEM_CERTS ?= 1
# A registry in the import form, and the reference systems of the benchmark; by default next to the checkout.
export MUNIMENT_SAMPLE_DATA ?= $(abspath $(wildcard ../shared/data/registry))
export MUNIMENT_REFERENCE_BENCH ?= $(abspath $(wildcard ../shared/bench))
COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --quiet --no-emit-index-url --custom-compile-command "make lock"

.PHONY: mutate growth help install serve services test check prove dist-check bench bench-start bench-search bench-pages bench-load bench-memory bench-visibility bench-listeners bench-visits bench-limits bench-statements bench-agents reference clients editor pictures screenshots lock audit dist messages

help: ## list these commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

# Says what is missing before anything is built: pip would refuse an old Python with the name of some package.
define suitable
	@$(or $(PYTHON),false) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: $(or $(PYTHON),python3) is not Python 3.11 or newer. Install one, or name it: make $(or $(MAKECMDGOALS),install) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import pip' 2>/dev/null || \
		{ echo "error: $(PYTHON) has no pip. On Debian it is the package python3-pip." >&2; exit 1; }
endef

# The environment is up to date when its stamp is newer than its sources. Everything in it is pinned by hash, including
# uv and the build backend; only pip and the standard library must exist before. It includes bytecode, because with
# PYTHONDONTWRITEBYTECODE every process would otherwise compile everything again.
install: $(VENV)/.installed ## build .venv from the pinned requirements

$(VENV)/.installed: requirements/dev.lock pyproject.toml
	$(suitable)
	test -x $(BIN)/python || $(PYTHON) -m venv --without-pip $(VENV)
	awk '/^uv==/ {on = 1} on {print} on && !/\\$$/ {exit}' requirements/dev.lock > $(VENV)/uv.txt
	$(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check --no-deps --require-hashes -r $(VENV)/uv.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --compile-bytecode -r requirements/dev.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q src
	touch $@ $(VENV)/.serving

# What serving needs, installed by pip alone: a third of what development needs. `make install` adds the rest.
$(VENV)/.serving: requirements/runtime.lock requirements/build.lock pyproject.toml
	$(suitable)
	@echo "Building $(VENV): 60 packages are downloaded and installed, which takes a minute or two."
	test -x $(BIN)/python || $(PYTHON) -m venv --without-pip $(VENV)
	$(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check --require-hashes -r requirements/build.lock -r requirements/runtime.lock
	$(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

serve: $(VENV)/.serving ## start the registry with its fictional demo data
	$(BIN)/muniment serve --demo

services: ## install the browser, the database and the npm packages that the tests need
	@# The tools of deploy/ and the vendors' SDKs are downloaded meanwhile; a test that needs them waits for them.
	@(cd tests && ../$(BIN)/python -c "from services.linters import folder; folder(), folder('clients')") & \
	checks/services && cd tests && ../$(BIN)/python -c "from services.node import TYPESCRIPT, packages; packages(); packages(TYPESCRIPT)"

# The bytecode of the tests is kept: it takes longer to write than to run many of them, and the second run reads it.
test prove: export PYTHONDONTWRITEBYTECODE =
# In memory, if 4 GB are free there: thousands of commits need not wait for a disk. The proofs are on the disk.
MEMORY := $(shell grep ' /dev/shm ' /proc/mounts 2>/dev/null | grep -qv noexec && df -m --output=avail /dev/shm | awk 'NR == 2 && $$1 > 4000 {print "/dev/shm"}')
test: export TMPDIR := $(or $(TMPDIR),$(MEMORY),/tmp)
# Tests wait for real servers, and a busy machine can starve one. At most five failed tests are run again, alone: what
# fails twice fails the suite, and what passes then stays named in the output as a fault to be mended.
AGAIN := test "$$(grep -c :: .pytest_cache/v/cache/lastfailed)" -le 5 && echo "Failed tests again, alone:" && $(BIN)/pytest --last-failed --last-failed-no-failures none --verbose
# `make test WHOLE=1` leaves nothing to `make prove`: it runs every case of every test.
SELECTION := $(if $(WHOLE),--whole)
test: install services ## the suite on SQLite, then what depends on the database on PostgreSQL; WHOLE=1 for every case
	@failed=0; \
	PYTHONPATH=tests $(BIN)/pytest $(DISTRIBUTED) $(SELECTION) -p services.raised -p services.statements || { $(AGAIN); } || failed=1; \
	$(BIN)/python checks/refusals.py || failed=1; \
	$(BIN)/pytest $(DISTRIBUTED) $(SELECTION) --database postgresql --without-repetitions || { $(AGAIN) --database postgresql; } || failed=1; \
	exit $$failed

check: install ## style, words, types, layers, walks, migrations and locks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python checks/house.py
	$(BIN)/python checks/libraries.py
	$(BIN)/python checks/words.py
	$(BIN)/python checks/messages.py --check
	$(BIN)/lint-imports
	@# What a reader must open to follow an owner's update, and a company of the API. Lower a limit when a walk gets shorter.
	$(BIN)/python checks/walk.py --max-files update=35 detail=10 --max-changes update=118 detail=29
	$(BIN)/mypy
	$(BIN)/python checks/clients.py --check
	data=$$(mktemp -d) && MUNIMENT_DATA=$$data DJANGO_SETTINGS_MODULE=muniment.settings \
		$(BIN)/python -m django makemigrations --check --dry-run; code=$$?; rm -r "$$data"; exit $$code

# Proofs measure time: they run one after another and need an otherwise idle machine.
prove: install services ## the long proofs, every test on SQLite and on PostgreSQL with two processes per product, webhooks, and growth
	@checks/services proofs
	@failed=0; \
	$(BIN)/pytest -m proof --timeout 1800 || failed=1; \
	$(BIN)/pytest --database postgresql -m proof --timeout 1800 || failed=1; \
	$(BIN)/pytest $(DISTRIBUTED) --whole || failed=1; \
	$(BIN)/pytest $(DISTRIBUTED) --whole --database postgresql --served 2 --timeout 1200 || failed=1; \
	$(BIN)/python bench/webhooks.py --events 20000 || failed=1; \
	$(BIN)/python bench/webhooks.py --events 12000 --kills 10 --database postgresql || failed=1; \
	$(BIN)/python bench/growth.py --companies 3000 || failed=1; \
	exit $$failed

mutate: install ## check that the tests notice 300 broken rules
	$(BIN)/python checks/mutate.py --workers $(WORKERS)

bench: install ## compare the product with the reference systems, and write bench/RESULTS.md
	$(BIN)/python bench/comparison $(BENCH_FLAGS)

bench-start: install ## measure startup, memory and rates against goals; --million for a large registry
	$(BIN)/python bench/run.py $(BENCH_FLAGS)

bench-search: install ## ask a real registry thousands of questions with slips
	$(BIN)/python bench/search.py $(BENCH_FLAGS)

bench-pages: install ## measure the CPU time of pages on a real registry
	$(BIN)/python bench/pages.py $(BENCH_FLAGS)

bench-load: install ## measure reads while a real registry is imported and changed
	$(BIN)/python bench/under_load.py $(MUNIMENT_SAMPLE_DATA) $(BENCH_FLAGS)

bench-memory: install ## measure memory under 30 minutes of mixed load
	$(BIN)/python bench/under_load.py $(MUNIMENT_SAMPLE_DATA) --no-import --minutes 30 $(BENCH_FLAGS)

bench-visibility: install services ## measure how soon a change shows in other processes and on other nodes
	$(BIN)/python bench/visibility.py $(BENCH_FLAGS)

bench-listeners: install ## measure thousands of listeners of the change feed on one process
	$(BIN)/python bench/listeners.py $(BENCH_FLAGS)

bench-visits: install services ## visit pages of a real registry in Chromium over slow networks
	$(BIN)/python bench/visits.py $(BENCH_FLAGS)

bench-limits: install services ## check the height and size of a real registry's largest pages and of a sample
	$(BIN)/python bench/limits.py $(BENCH_FLAGS)

growth: install ## check that no work grows faster than its data, up to 100,000 companies
	$(BIN)/python bench/growth.py $(BENCH_FLAGS)

bench-statements: install services ## ask a real registry hostile statements, beside the reads of others
	$(BIN)/python bench/hostile_statements.py $(MUNIMENT_SAMPLE_DATA) $(BENCH_FLAGS)

bench-agents: install ## let a script, or a model, do the jobs of agents
	$(BIN)/python bench/agent_jobs/run.py $(BENCH_FLAGS)

messages: install ## bring the message catalogues up to date with the texts of the code
	$(BIN)/python checks/messages.py

reference: install ## write the tables of docs/REFERENCE.md
	$(BIN)/python checks/reference.py

clients: install ## generate the parts of clients/ that follow from the contract
	$(BIN)/python checks/clients.py

editor: $(VENV)/.installed ## bundle the editor of the query page anew
	cd tests && ../$(BIN)/python -m services.editor

pictures: install services ## take the pictures of the README from the demo
	PYTHONPATH=tests $(BIN)/python tests/browser/pictures.py docs/pictures

screenshots: install services ## pictures of every page in light, dark and phone width
	PYTHONPATH=tests $(BIN)/python tests/browser/screenshots.py $(SCREENSHOT_FLAGS)

audit: install ## check every pinned version against a vulnerability database
	$(BIN)/python checks/audit.py $(AUDIT_FLAGS)

dist: install ## build the wheel, the source archive, the clients, a list of what they need (SBOM, CycloneDX) and checksums
	rm -rf $(DIST)
	$(BIN)/python -m hatchling build --target sdist --target wheel --directory $(DIST)
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --mc-type application --spec-version 1.6 \
		--output-reproducible --validate --output-format JSON --output-file $(DIST)/sbom.cdx.json requirements/runtime.lock
	cd clients/python && $(abspath $(BIN))/python -m hatchling build --target sdist --target wheel --directory $(abspath $(DIST))
	$(BIN)/python checks/clients.py --pack $(DIST)
	cp requirements/runtime.lock deploy/Containerfile $(DIST)/
	cd $(DIST) && sha256sum * > SHA256SUMS && sha256sum --check --quiet SHA256SUMS

dist-check: dist ## install the wheel as users do, with the newest and the oldest libraries, and ask the demo of each
	$(BIN)/python checks/wheel.py $(DIST)

lock: install ## pin every dependency by hash
	$(COMPILE) pyproject.toml -o requirements/runtime.lock
	$(COMPILE) pyproject.toml --all-extras --group dev -o requirements/dev.lock
	$(COMPILE) pyproject.toml --all-extras --constraint requirements/dev.lock -o requirements/container.lock
	$(COMPILE) --group build --constraint requirements/dev.lock -o requirements/build.lock
	$(COMPILE) --group deploy --constraint requirements/dev.lock -o requirements/deploy.lock
	$(COMPILE) --group cluster --constraint requirements/dev.lock -o requirements/cluster.lock
	$(COMPILE) --group clients -o requirements/clients.lock
	$(subst 3.11,3.12,$(COMPILE)) --group witness -o requirements/witness.lock
