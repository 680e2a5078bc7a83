# Small helpers for the scripts in this folder's parent. Source it; it changes no shell options.
# shellcheck shell=bash

say() { printf '%s\n' "$*"; }

die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# Runs a command as root: directly, or through sudo.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1; then
    sudo "$@"
  else
    echo "this needs root, and there is no sudo: $*" >&2
    return 1
  fi
}

package_installed() {
  [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null)" = 'ii ' ]
}

# apt's lists are fetched only when a package has no candidate in those that are here.
refresh_package_lists_for() {
  local name
  for name in "$@"; do
    if ! apt-cache show --no-all-versions "$name" >/dev/null 2>&1; then
      as_root apt-get -qq update
      return
    fi
  done
}

# Downloads packages into the current directory without installing them.
download_debs() {
  refresh_package_lists_for "$@" || return 1
  local options=()
  # As root, apt would drop to a user who may not write here.
  [ "$(id -u)" != 0 ] || options=(-o APT::Sandbox::User=root)
  apt-get "${options[@]}" download "$@" && return 0
  as_root apt-get -qq update && apt-get "${options[@]}" download "$@"
}

# install_packages WHAT PACKAGE...: installs those that are missing, with one progress line.
install_packages() {
  local what=$1 name missing=() log
  shift
  for name in "$@"; do package_installed "$name" || missing+=("$name"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null 2>&1 ||
    die "These packages are needed $what, and this system has no apt-get: ${missing[*]}"
  say "installing ${#missing[@]} packages $what: ${missing[*]}"
  log=$(mktemp)
  if ! { refresh_package_lists_for "${missing[@]}" && install_now "${missing[@]}"; } >"$log" 2>&1 &&
    ! { as_root apt-get -qq update && install_now "${missing[@]}"; } >>"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    die "apt-get could not install the packages needed $what (its last lines are above)."
  fi
  rm -f "$log"
}

install_now() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o DPkg::Lock::Timeout=300 "$@"
}
