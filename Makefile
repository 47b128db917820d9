# make test   what every change must pass     make faults   crashes, restarts and bad peers, a few minutes
# make demo   see it work                     make bench    measure it (DATA=folder: with the paper's data)
# make chaos  try to break it, an hour        make audit    known vulnerabilities of the pinned packages
# make sanitize   the native kernel under sanitizers and valgrind
# make release   a release up to publishing    make update   newer versions of all packages, and every check
# make gallery   the pictures of docs/gallery.md, made again
# make docs   the documentation's site         make containers   the image and both compose files, for real
# make arm    the AArch64 kernel in an emulator   make wheels   what can be published: sdist and wheels, into dist/
# make browser    the pages in Chromium, Firefox and WebKit; screenshots go to bench-results/screenshots
# Each needs only Python 3.11+ and make, and works in its own environment, .venv.

# From any folder: make -f FOLDER/Makefile test works in FOLDER.
HERE := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
ifneq ($(HERE),$(CURDIR))
%:
	@$(MAKE) --no-print-directory -C $(HERE) $@
else

PYTHON ?= python3
BIN := .venv/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Tests of one module share its servers, so a module stays in one process. One process more than there are cores: a test
# that waits for something leaves its core to another.
PROCESSES = $(shell $(PYTHON) -c 'import os; print(min(4, 1 + (os.cpu_count() or 1)))')
PARALLEL = $(BIN)/python -m pytest --numprocesses $(PROCESSES) --dist loadscope --no-loadscope-reorder
# Read modules once, whatever the shell says: a run starts a hundred interpreters.
unexport PYTHONDONTWRITEBYTECODE
# Tests run beside each other: threads of the linear algebra would only wait for one another.
test units test-numpy slow faults chaos: export OPENBLAS_NUM_THREADS = 1

NATIVE := $(filter-out %/module.c,$(wildcard fss/native/*.c tests/native/*.c))
CHECK := $(CC) -std=c11 -g -fno-var-tracking-assignments -Wall -Wextra -Werror -Wno-psabi -Ifss/native
ASAN := -O1 -fsanitize=address,undefined -fno-sanitize-recover=all

ARM_CC := aarch64-linux-gnu-gcc
ARM_RUN := qemu-aarch64
ARM_HELP := "make arm needs $(ARM_CC) and $(ARM_RUN); on Debian: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"

RETRIES := -o Acquire::Retries=5
# Programs, and Debian's packages that have them: installed where one is missing and it may be.
DEBIAN = @( for program in $(1); do command -v $$program >/dev/null || exit 1; done ) || { \
  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
  { apt-get $(RETRIES) update -qq; apt-get $(RETRIES) install -y -qq $(2) >/dev/null; }; } || \
  echo "not here, and cannot be installed: $(1); on Debian: apt-get install $(2)"

.PHONY: test units test-numpy slow faults chaos audit alerts lint lint-javascript demo bench docs gallery containers sanitize arm wheels \
  browser release update clean

# Types are checked beside the tests: alone they would leave a core idle.
test: .venv/ready
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint units

units: .venv/ready
	$(PARALLEL) -m "not faults and not slow and not browser"

# The core and the whole protocol once more, without the native kernel; but for what tries both back ends by itself.
test-numpy: .venv/ready
	FSS_BACKEND=numpy $(PARALLEL) tests/fss tests/test_flow.py fss --ignore tests/fss/test_native.py \
	  $$(grep -l 'usefixtures("each_backend")' tests/fss/*.py | sed 's/^/--ignore /')

# The native kernel under the address and undefined sanitizers, alone and below Python, and under valgrind, which also
# reports what branches or indexes by a secret. It knows no VAES: that machine code runs step by step instead, on other and
# other secrets (tests/native/trace.c), which takes a minute.
sanitize: .venv/ready
	mkdir -p build/sanitized
	$(CHECK) $(ASAN) $(NATIVE) -o build/driver-sanitized
	build/driver-sanitized
	$(BIN)/python -m tests.native.answers >build/answers
	build/driver-sanitized answers <build/answers
	cp -r fss tests pyproject.toml build/sanitized
	$(CHECK) $(ASAN) -shared -fPIC -I$$($(BIN)/python -c 'import sysconfig as s; print(s.get_path("include"))') \
	  fss/native/*.c -o build/sanitized/$$(ls fss/_native.*.so)
	cd build/sanitized && LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0 PYCRYPTODOME_DISABLE_DEEPBIND=1 FSS_BACKEND=native \
	  ../../$(BIN)/python -m pytest tests/fss/test_native.py tests/fss/test_table_native.py
	$(CHECK) -O3 -fPIC -no-pie -Wl,--wrap=aligned_alloc,--wrap=free,--wrap=memcpy,--wrap=memset $(NATIVE) -o build/driver-traced
	$(BIN)/python -m tests.native.machine_code build/driver-traced >build/operands
	build/driver-traced trace <build/operands
	$(CHECK) -O3 $(NATIVE) -o build/driver
	@command -v valgrind >/dev/null || { echo "valgrind is not installed: its part is left out"; exit 0; }; \
	  valgrind -q --leak-check=full --error-exitcode=9 build/driver && \
	  valgrind -q --error-exitcode=9 build/driver secrets && \
	  ! valgrind -q --error-exitcode=9 build/driver leak >/dev/null 2>&1

# The driver and the known answers, as an AArch64 processor computes them.
arm: .venv/ready
	@command -v $(ARM_CC) >/dev/null && command -v $(ARM_RUN) >/dev/null || { echo $(ARM_HELP); exit 1; }
	mkdir -p build
	$(CHECK:$(CC)%=$(ARM_CC)%) -O3 -static $(NATIVE) -o build/driver-arm
	$(ARM_RUN) build/driver-arm
	$(BIN)/python -m tests.native.answers | $(ARM_RUN) build/driver-arm answers

# The sdist, the wheel for this machine made of it and, where there is a cross compiler, the one for AArch64. Each wheel
# is for every Python from 3.11 on and, says auditwheel, for every Linux with a C library of 2017. This machine's is
# tried in an empty environment.
wheels: .venv/ready-wheels
	rm -rf dist build/wheels build/try
	LDFLAGS=-s $(BIN)/python -m build --outdir build/wheels
	mkdir -p dist && cp build/wheels/*.tar.gz dist
	if command -v $(ARM_CC) >/dev/null; then \
	  CC=$(ARM_CC) LDSHARED="$(ARM_CC) -shared -s" _PYTHON_HOST_PLATFORM=linux-aarch64 \
	    $(BIN)/python -m build --wheel --outdir build/wheels; fi
	set -e; for wheel in build/wheels/*.whl; do PATH="$(BIN):$$PATH" auditwheel repair --wheel-dir dist $$wheel; done
	$(PYTHON) -m venv build/try
	build/try/bin/pip install --quiet --constraint constraints.txt dist/*_$$(uname -m).whl
	cd build && FSS_BACKEND=native try/bin/python -c 'import fss; print(fss.backend(), fss.__file__)' && \
	  try/bin/fss-dealer --help >/dev/null

slow: .venv/ready
	$(PARALLEL) -m slow

# Alerts, played against series of numbers by Prometheus's own program.
alerts:
	$(call DEBIAN,promtool,prometheus)
	promtool check rules deploy/prometheus-alerts.yml
	promtool check config --syntax-only deploy/prometheus.yml
	promtool test rules deploy/prometheus-alerts.test.yml

# Tests of the load balancer are left out without it.
faults: .venv/ready-faults
	$(call DEBIAN,haproxy,haproxy)
	$(PARALLEL) -m faults

browser: .venv/ready
	$(call DEBIAN,chromium chromedriver,chromium chromium-driver)
	$(call DEBIAN,firefox-esr,firefox-esr)
	$(call DEBIAN,WebKitWebDriver Xvfb,webkit2gtk-driver xvfb)
	$(PARALLEL) tests/pages -m browser -rs

chaos: .venv/ready
	$(BIN)/python -m tests.chaos --json bench-results/chaos.json

audit: .venv/ready-audit
	$(BIN)/python -m bench audit

# The documentation as a site that needs no network, in site/.
docs: .venv/ready-docs
	$(BIN)/python -m tools.site

# The pictures of docs/gallery.md and the page, made again from two live servers: a few minutes. Needs a browser.
gallery: .venv/ready-bench
	$(BIN)/python -m tools.gallery

# The image and both compose files, for real: with docker where there is one, else podman. BASE=IMAGE: another base.
containers: .venv/ready-containers
	$(BIN)/python -m tools.containers $(if $(BASE),--base $(BASE))

# What would be published: built, checked, installed apart, with the demo run from it, in dist/.
release: .venv/ready-release
	$(BIN)/python -m tools.release

# The newest versions of everything into constraints.txt, then all that must hold.
update:
	$(PYTHON) -m tools.update
	.ci/run

lint: .venv/ready lint-javascript
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The types, faults and layout of the JavaScript.
CHECKERS := build/javascript/node_modules/.bin
JAVASCRIPT = $(wildcard fss_ecdf/pages/*.js fss_ecdf/pages/*/*.js tests/pages/*.js)
lint-javascript:
	@command -v npm >/dev/null || { echo "node and npm are not here: the JavaScript is not checked"; exit 0; }; \
	  mkdir -p build/javascript && { cmp -s tools/javascript/package.json build/javascript/package.json || { \
	  cp tools/javascript/package.json build/javascript && \
	  npm install --prefix build/javascript --no-package-lock --no-audit --no-fund --silent; } || \
	  { rm -f build/javascript/package.json; echo "npm cannot install the checkers: the JavaScript is not checked"; \
	  exit 0; }; } && \
	  $(CHECKERS)/oxlint --quiet --config tools/javascript/oxlint.json $(JAVASCRIPT) && \
	  $(CHECKERS)/prettier --log-level warn --print-width 120 --cache \
	  --cache-location build/javascript/prettier-cache --check $(JAVASCRIPT) && \
	  $(CHECKERS)/tsc --project tools/javascript

demo: .venv/ready
	$(BIN)/fss-ecdf demo $(if $(KEEP),--keep)

bench: .venv/ready-bench
	$(BIN)/python -m bench core --rounds 2 --runs 5 --json bench-results/core.json
	$(BIN)/python -m bench system --many 0 --json bench-results/system.json
	$(BIN)/python -m bench communication --quick --json bench-results/communication.json --out bench-results
	$(BIN)/python -m bench figures --runs 3 --levels 11 $(if $(DATA),--data-dir $(DATA)) \
	  --out bench-results/figures --json bench-results/figures.json
	$(BIN)/python -m bench index bench-results

.venv/ready: pyproject.toml constraints.txt $(wildcard fss/native/*)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; found $$($(PYTHON) --version). Try: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	@rm -f fss/_native.*.so # a kernel that no longer compiles must not hide behind an old one
	@echo "installing the pinned packages into .venv ..."
	$(INSTALL) --editable '.[dev]'
	@touch $@

# An extra's packages beside the others; the package itself is there already.
.venv/ready-%: .venv/ready
	$(INSTALL) $$($(BIN)/python -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	  print(*(name for name in project["optional-dependencies"]["$*"] if not name.startswith(project["name"])))')
	@touch $@

clean:
	rm -rf .venv bench-results build dist site fss/*.so

endif
