# Two commands: `make quick` runs everything at the embedded scale, `make test` checks it.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
SNAKEMAKE := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/snakemake

REAL = --config 'data={"files":{"train":"$(GSM8K)/train.jsonl","test":"$(GSM8K)/test.jsonl"}}'
gsm8k: export CONFIG = $(REAL)

full: export CUDA_VISIBLE_DEVICES ?= 0,0,0,0# four jobs share the first GPU, if there is one
full: export CONFIG = $(if $(SCALE),--configfile profiles/full/full.yaml profiles/full/$(SCALE).yaml)\
  $(if $(filter gsm8k,$(SCALE)),$(REAL) 'pretraining={"gsm8k":"$(GSM8K)/train.jsonl"}')

.PHONY: quick report gsm8k full pretrain test slurm-test lint lock docs clean

quick: .venv/ready ## everything at the embedded scale, then the report
	$(SNAKEMAKE) --profile profiles/quick
	@$(MAKE) --no-print-directory report RUN=quick

gsm8k: .venv/ready ## the same on the real GSM8K: make gsm8k GSM8K=folder with train.jsonl and test.jsonl
	@test -f "$(GSM8K)/test.jsonl" || { echo "error: GSM8K=<folder> must hold train.jsonl and test.jsonl in OpenAI's format"; exit 2; }
	$(SNAKEMAKE) --profile profiles/gsm8k $(CONFIG)
	@$(MAKE) --no-print-directory report RUN=gsm8k

full: .venv/ready ## the paper's protocol on bases from scratch: make full [SCALE=cpu] or SCALE=gsm8k GSM8K=folder
	$(SNAKEMAKE) --profile profiles/full $(CONFIG)
	@$(MAKE) --no-print-directory report RUN=full$(SCALE:%=_%) PROFILE=full

report: PROFILE ?= $(RUN)
report: .venv/ready ## the HTML report and the graphs of a run: make report RUN=quick
	$(SNAKEMAKE) report --profile profiles/$(PROFILE) $(CONFIG)
	@echo && cat reports/$(RUN)/tables/main.md
	@echo && echo "tables:  reports/$(RUN)/tables"
	@echo "figures: reports/$(RUN)/figures"
	@echo "claims:  reports/$(RUN)/claims.md"
	@echo "report:  reports/$(RUN)/report.html"

pretrain: .venv/ready ## make the embedded base models again (about half an hour)
	$(SNAKEMAKE) --profile profiles/quick pretrain_bases

test: .venv/ready lint ## every test, the end-to-end run included
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest

slurm-test: .venv/ready ## the workflow on a Slurm of one node, started for it (Debian: slurmctld slurmd slurm-client munge)
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest tests/slurm

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow/rules
	$(BIN)/codespell
	-$(BIN)/python tools/check_prose.py

docs: .venv/ready ## what is generated from the code: the configuration reference
	$(BIN)/python workflow/scripts/document_config.py docs/configuration.md

lock: ## resolve the lock file anew
	uv pip compile --quiet --universal --generate-hashes --all-extras --custom-compile-command "make lock" \
	  pyproject.toml --output-file requirements.lock

.venv/ready: requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "error: Python 3.11 or newer is needed; name one with make PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet "uv==0.13.8"
	$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements.lock
	@touch $@

clean: ## remove what runs leave behind, not the environment
	rm -rf results reports/*/ .snakemake
