#!/usr/bin/env bash
# Installs the Debian packages named as arguments, if they are missing; says what to do where it
# cannot.
set -eu

command -v cargo >/dev/null || {
  echo "Quorate is built with a Rust toolchain (1.85 or later), and there is no cargo here." >&2
  echo "See https://rustup.rs, or install your distribution's cargo." >&2
  exit 1
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "This is no Debian, so nothing was installed. What is needed, under Debian's names: $*" >&2
  exit 0
fi

missing=()
for package in "$@"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    as_root=(sudo)
  else
    echo "These packages are missing, and installing them takes root: ${missing[*]}" >&2
    echo "As root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
fi

echo "Installing ${missing[*]} (apt) ..."
"${as_root[@]}" apt-get update -qq || echo "apt-get update failed; going on with the lists there are." >&2
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" || {
  echo "apt could not install: ${missing[*]}" >&2
  echo "Quorate's build needs libclang-dev; its tests need PostgreSQL 15's client and server, and strace." >&2
  exit 1
}
