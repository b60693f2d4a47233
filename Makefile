# make run    sets up, builds, and runs the main example: JAX on two processes
# make test   sets up, builds, and runs every suite; with SUITE="pods e2e" only those
# make help   lists the rest, and the suites

.PHONY: run build test steady soak unit format setup setup-run setup-test clean help
.DEFAULT_GOAL := help
# The machine's own choice of Python; suites use the environment that tools/venv makes.
export GRAPNEL_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/grapnel

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile
	@echo; echo "Suites, for SUITE=:"; tools/test --list

setup:
	@tools/setup build

setup-run:
	@tools/setup run

setup-test:
	@tools/setup test

# make build  gives build/release/grapnel
build: setup
	@[ -f build/release/build.ninja ] || cmake --preset release >/dev/null
	@cmake --build --preset release

run: setup-run build
	@python=$$(tools/runtimes jax) && export VIRTUAL_ENV=$$(dirname $$(dirname $$python)) && \
	  export PATH=$$VIRTUAL_ENV/bin:$$PATH grapnel=$$PWD/build/release/grapnel && cd examples/jax && \
	  echo "examples/jax: grapnel run --cluster example manifest.yaml" && \
	  { $$grapnel run --cluster example manifest.yaml; \
	    code=$$?; $$grapnel down --name example; exit $$code; }

test: setup-test
	@tools/test $(SUITE)

# make steady N=5  runs suites with real processes N times beside a load, and lists what failed how often
steady:
	@tools/setup steady
	@tools/steady $(or $(N),5) $(SUITE)

# make soak   the suites that find more the longer they run: kills, leaks, Ray clusters, JobSets
soak: setup-test
	@tools/soak

# make unit   only the unit tests, under the sanitizers
unit: setup-test
	@tools/test unit

# make format formats the sources
format:
	@git ls-files 'src/*.h' 'src/*.cpp' 'tests/*.h' 'tests/*.cpp' 'bench/*.cpp' | xargs clang-format-19 -i

clean:
	@rm -rf build
