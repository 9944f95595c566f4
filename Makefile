# Counterpoint: two commands to start with, `make run` and `make test`; `make help` lists all.
#
# Everything is installed into .venv from lock files with hashes. A file in .venv remembers what was installed,
# by the contents of those lock files, so that a second start installs nothing and needs no network.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# Which Python makes the environment (default: the first suitable one), where the server listens, what else it
# is told, and which tests run.
PYTHON ?=
PORT ?= 8099
ARGS ?=
MARKS ?= not (slow or browser or clients or servers)
TESTS ?= tests

# The file that says: what requirements/$(1).lock and pyproject.toml say now is installed.
installed = $(VENV)/.$(1)-$(shell cat requirements/build.lock requirements/$(1).lock pyproject.toml | cksum | cut -d' ' -f1)

.PHONY: help run test browser clients servers check format docs bench fuzz simulate soak lock clean

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile

run: $(call installed,voice) ## install everything, then serve the voice and its page on this machine
	@$(BIN)/counterpoint install-voice
	@echo "When it is ready, open http://127.0.0.1:$(PORT)/ (Ctrl-C stops it)"
	@$(BIN)/counterpoint serve --port $(PORT) $(ARGS)

test: $(call installed,dev) $(call installed,voice) ## run the tests, those of the embedded voice included
	@$(BIN)/counterpoint install-voice
	@$(BIN)/python -m pytest -m "$(MARKS)" $(ARGS) $(TESTS)

browser: $(call installed,dev) $(call installed,voice) ## run the tests of the page; they need Chromium
	@$(BIN)/counterpoint install-voice
	@$(BIN)/python -m pytest -m browser $(ARGS) tests/serving/page

# Each stock client has an environment of its own; a file in it remembers what was installed, as above.
CLIENTS := .venv-clients
client = $(CLIENTS)/$(1)/.installed-$(shell cksum requirements/clients/$(1).lock | cut -d' ' -f1)
NODE := tests/clients/node
node = $(NODE)/node_modules/.installed-$(shell cksum $(NODE)/package-lock.json | cut -d' ' -f1)

STOCK := $(call client,openai) $(call client,openai-agents) $(call client,pipecat-ai) \
  $(call client,livekit-agents) $(call node)

clients: $(call installed,dev) $(call installed,voice) $(STOCK) ## run the clients of other projects; they need Node and Chromium
	@$(BIN)/counterpoint install-voice
	@$(BIN)/python -m pytest -m clients $(ARGS) tests/clients

define install_client
$$(call client,$(1)): $(VENV)/.created
	rm -rf $(CLIENTS)/$(1)
	$(BIN)/python -m venv $(CLIENTS)/$(1)
	$(CLIENTS)/$(1)/bin/python -m pip install --quiet --require-hashes -r requirements/clients/$(1).lock
	@touch $$@
endef
$(eval $(call install_client,openai))
$(eval $(call install_client,openai-agents))
$(eval $(call install_client,pipecat-ai))
$(eval $(call install_client,livekit-agents))

$(call node):
	npm ci --prefix $(NODE) --no-audit --no-fund
	@touch $@

# Model servers of other projects, in environments of their own like the clients.
SERVERS := .venv-servers
DASLLAMA := $(SERVERS)/dasllama/.installed-$(shell cksum requirements/servers/dasllama.lock | cut -d' ' -f1)

servers: $(call installed,dev) $(call installed,voice) $(DASLLAMA) ## run the cascade on a model server of another project
	@$(BIN)/counterpoint install-voice
	@$(BIN)/python -m pytest -m servers $(ARGS) tests/cases

$(DASLLAMA): $(VENV)/.created
	rm -rf $(SERVERS)/dasllama
	$(BIN)/python -m venv $(SERVERS)/dasllama
	$(SERVERS)/dasllama/bin/python -m pip install --quiet --require-hashes -r requirements/servers/dasllama.lock
	@touch $@

check: $(call installed,dev) ## format, lint, types, import contracts, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	@$(MAKE) --no-print-directory test

format: $(call installed,dev) ## put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(call installed,dev) ## write the generated pages of docs/reference anew
	$(BIN)/python tools/settings_reference.py
	$(BIN)/python tools/command_line_reference.py
	$(BIN)/python tools/conformance_reference.py
	$(BIN)/python tools/conversation_reference.py

bench: $(call installed,dev) ## measure the server
	@$(BIN)/counterpoint bench $(ARGS)

fuzz: $(call installed,dev) ## send a million frames that nobody would write (ARGS="--seed 2 --frames 1000")
	@$(BIN)/python tools/fuzz.py $(ARGS)

SEEDS ?= 200
STEPS ?= 20000

simulate: $(call installed,dev) ## search for the schedule that breaks a session (SEEDS=40 STEPS=5000)
	@for seed in $$(seq 1 $(SEEDS)); do $(BIN)/counterpoint simulate --seed $$seed --steps $(STEPS) || exit 1; done

SECONDS ?= 600
SEED ?= 1

soak: $(call installed,dev) ## kill the clients of fifty sessions again and again (SECONDS=60 SEED=2)
	@SECONDS=$(SECONDS) SEED=$(SEED) $(BIN)/python -m pytest -s -m slow $(ARGS) tests/cases/test_soak.py

lock: $(VENV)/.created ## write requirements/*.lock anew (ARGS=--upgrade takes newer versions)
	$(PIP) install --quiet uv
	tools/lock.sh $(BIN)/uv $(ARGS)

clean: ## remove everything that was installed or generated
	rm -rf $(VENV) $(CLIENTS) $(SERVERS) $(NODE)/node_modules dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests tools -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.created:
	@python=$$(tools/find-python.sh $(PYTHON)) && echo "$(VENV): $$python" && "$$python" -m venv $(VENV)
	@touch $@

define install
$$(call installed,$(1)): $(VENV)/.created
	$(PIP) install --require-hashes -r requirements/build.lock -r requirements/$(1).lock
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@rm -f $(VENV)/.$(1)-*
	@touch $$@
endef
$(eval $(call install,voice))
$(eval $(call install,dev))
