#!/usr/bin/env bash
# Makes .venv once: checks Python and Java, installs what the locks name, fetches Delta's jars.
# Says one sentence and exits 2 when the machine lacks something.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly NEEDED_MB=3000
readonly STAMP=.venv/.setup
readonly MACHINE=pipelines/tidemill/lake/session/local_machine.py

say() { printf 'setup: %s\n' "$1" >&2; }
fail() { say "$1"; exit 2; }

main() {
  local state
  state="$PWD $(cat requirements-build.lock requirements.lock pyproject.toml "$MACHINE" | cksum)"
  if [[ -x .venv/bin/tidemill && -r $STAMP && $(<"$STAMP") == "$state" ]]; then return; fi
  find_python
  "$python" "$MACHINE" || exit 2
  check_folder
  make_venv
  say "installing the packages of requirements.lock (about 700 MB, a minute or two, once)"
  run .venv/bin/pip install --require-hashes -r requirements-build.lock
  run .venv/bin/pip install --no-build-isolation --require-hashes -r requirements.lock
  run .venv/bin/pip install --no-build-isolation --no-deps --editable .
  say "fetching Delta's jars unless they are here (about 190 MB, 30 s, once)"
  .venv/bin/python -c 'import sys; from tidemill.lake.session.session import main; sys.exit(main())' || exit 2
  say "fetching the jars of Kafka sources unless they are here (10 MB, once)"
  .venv/bin/tidemill doctor --warm --source kafka >/dev/null || true
  say "archiving Spark's classes, so that sessions start sooner (a minute, once)"
  .venv/bin/tidemill doctor --warm >/dev/null || true
  printf '%s' "$state" >"$STAMP"
}

find_python() {
  for python in "${PYTHON:-python3}" python3.13 python3.12 python3.11 python3.10; do
    if supported "$python"; then return; fi
  done
  fail "no Python 3.10 or newer found on PATH; install one, or run make with PYTHON=/path/to/python3"
}

supported() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
}

check_folder() {
  mkdir -p .venv 2>/dev/null && [[ -w .venv ]] ||
    fail "the folder $PWD cannot be written; move the project to a folder of your own"
  local free
  free=$(df -Pm . | awk 'NR == 2 { print $4 }')
  ((free >= NEEDED_MB)) ||
    fail "the disk of $PWD is full ($free MB free); free about $NEEDED_MB MB and run it again"
}

make_venv() {
  if .venv/bin/pip --version >/dev/null 2>&1 && supported .venv/bin/python; then return; fi
  "$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "$python cannot make virtual environments; install them (Debian: apt-get install python3-venv)"
  run "$python" -m venv --clear --without-pip .venv
  run .venv/bin/python -m ensurepip --default-pip
}

# Runs a command in silence; a failure becomes a sentence. Its output is not kept in a file, because
# the disk may be what is full.
run() {
  local output
  if output=$("$@" 2>&1); then return; fi
  case $output in
    *"No space left"* | *"File too large"* | *"quota exceeded"*)
      fail "the disk is full (of $PWD or ${TMPDIR:-/tmp}); free about $NEEDED_MB MB and run it again" ;;
    *"Read-only file system"* | *"Permission denied"*)
      fail "a folder cannot be written: $(grep -m1 -E 'Read-only|Permission' <<<"$output")" ;;
    *"No matching distribution"* | *"Failed to establish"* | *"Max retries"* | *"ConnectTimeout"* | *"onnection "* | *"name resolution"* | *"ProxyError"*)
      fail "the packages cannot be downloaded; check the network, the proxy and pip's index, and run it again" ;;
    *)
      fail "$* failed: $(tail -n 1 <<<"$output")" ;;
  esac
}

main
