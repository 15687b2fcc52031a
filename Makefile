# SPDX-License-Identifier: MIT
# Each of these sets up .venv by itself the first time; PYTHON=python3.12 chooses the Python.
.DEFAULT_GOAL := help
.PHONY: help setup demo test check format gpu ranks hosts sanitize bench docs clean
bin := .venv/bin
headers := $(wildcard src/torchspan/native/include/*.h)

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

setup: ## make .venv with everything in it (the others do this too)
	@PYTHON="$(PYTHON)" tools/setup

demo: setup ## one model over all devices and two ranks, in a table
	@$(bin)/python examples/demo/demo.py

test: setup ## every test
	$(bin)/python -m pytest -n 2 --dist worksteal $(ARGS)

check: setup ## format, lint, types, sizes
	$(bin)/ruff format --check . && $(bin)/ruff check . && $(bin)/mypy
	$(bin)/clang-format --dry-run --Werror $$(git ls-files '*.[ch]' '*.[ch]pp')
	$(CC) -std=c11 -Wall -Wextra -pedantic -Werror -fsyntax-only -x c $(headers)
	$(bin)/python tools/style.py

format: setup ## put every file into the house format
	$(bin)/ruff format . && $(bin)/ruff check --fix .
	$(bin)/clang-format -i $$(git ls-files '*.[ch]' '*.[ch]pp')

gpu: setup ## the tests that need an accelerator
	$(bin)/python -m pytest -m gpu $(ARGS)

ranks: setup ## the tests that run on 1, 2 and 3 ranks
	tools/ranks

hosts: setup ## the rank examples across two hosts (root only)
	tools/hosts

sanitize: setup ## the C tests with address and undefined-behaviour sanitizers
	$(bin)/python -m pytest -n 2 --sanitize tests/native/test_c_*.py $(ARGS)

bench: setup ## measure against plain PyTorch
	$(bin)/python -m bench $(ARGS)

docs: setup ## build the pages into build/docs
	$(bin)/mkdocs build --strict --quiet --config-file tools/mkdocs.yml

clean: ## remove what was built; .venv too
	rm -rf .venv build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache
