#!/usr/bin/env bash
# Finds a Chromium for the browser tests, or installs one from the system's packages; says where it is, or nothing.
#
#   tools/chromium.sh            prints the path of a Chromium or Chrome, and exits with 1 if there is none
#   tools/chromium.sh --install  the same, but tries apt-get first where there is none (as root, or by sudo without a
#                                password), for at most ten minutes. It always exits with 0: the tests go on without.
#
# TACIT_CHROMIUM names another one. Nothing is fetched but from the package sources that the system has.
set -u

# A stub that only says what to install does not count.
usable() {
  "$1" --version >/dev/null 2>&1 && command -v "$1"
}

find_chromium() {
  if [ -n "${TACIT_CHROMIUM:-}" ]; then
    usable "$TACIT_CHROMIUM"
    return
  fi
  for name in chromium chromium-browser google-chrome google-chrome-stable chrome; do
    usable "$name" && return
  done
  return 1
}

install_chromium() {
  command -v apt-get >/dev/null || return 1
  local become=""
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || return 1
    become="sudo -n"
  fi
  echo "installing chromium from the system's packages for the browser tests" >&2
  local get="timeout 300 $become env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=60"
  $get update >/dev/null 2>&1
  $get install --yes --no-install-recommends chromium >/dev/null 2>&1
}

if find_chromium; then
  exit 0
fi
if [ "${1:-}" = "--install" ]; then
  install_chromium
  find_chromium || echo "no Chromium here, and none could be installed: the browser tests will be skipped" >&2
  exit 0
fi
exit 1
