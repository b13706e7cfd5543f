# Debian packages: only those whose command is missing, so that a tool from elsewhere is used as it is.
. "$SANDGLASS_PROVISION/toolchain.sh"
. "$SANDGLASS_PROVISION/apt.sh"
step_without_scratch=1

step_title() { echo "Debian packages"; }
step_detail() { missing_packages | tr '\n' ' ' >"$work/packages.missing.new" && cat_once; }
step_is_current() { [ -z "$(missing_packages)" ]; }
step_wanted() { echo "to install: $(missing_packages | tr '\n' ' ')"; }
step_remedy() { echo "apt-get update && apt-get install $(missing_packages | tr '\n' ' ')"; }

# The list is taken before the work; afterwards nothing is missing any more.
cat_once() {
  if [ ! -s "$work/packages.missing" ]; then mv "$work/packages.missing.new" "$work/packages.missing"; fi
  cat "$work/packages.missing"
}

missing_packages() {
  lacks_command ip iproute2
  lacks_command mmdebstrap mmdebstrap
  lacks_command mkfs.erofs erofs-utils
  lacks_command mount mount
  lacks_command losetup mount
  lacks_command setpriv util-linux
  lacks_command useradd passwd
  [ -s /etc/ssl/certs/ca-certificates.crt ] || echo ca-certificates
  if ! found_npm; then printf 'nodejs\nnpm\n'; fi
  # What cuts a node of a lab off, sets its clock, and gives it a disk.
  if [ -n "${SANDGLASS_FOR_LAB:-}" ]; then
    lacks_command nft nftables
    lacks_command faketime faketime
    lacks_command mkfs.ext4 e2fsprogs
    lacks_command fallocate util-linux
  fi
  if needs_building guest-agent || needs_building warden; then
    lacks_command cc gcc
    [ -e /usr/lib/x86_64-linux-gnu/libc.a ] || echo libc6-dev
    if ! found_cargo; then printf 'rustc-web\ncargo-web\n'; fi
  fi
  if needs_building runsc && ! found_runsc >/dev/null && ! found_go; then echo golang-go; fi
}

lacks_command() { command -v "$1" >/dev/null 2>&1 || echo "$2"; }

needs_building() { ! (. "$SANDGLASS_PROVISION/$1.sh" && step_is_current); }

step_build() {
  command -v apt-get >/dev/null 2>&1 || saw "no apt-get here: Sandglass installs itself on Debian; elsewhere install these by hand"
  is_root_user || saw "user $(id -un), who may not install packages"
  wanted=$(missing_packages)
  # Lists are fetched only where the packages are unknown or gone from the mirror.
  # shellcheck disable=SC2086 # a list of package names
  if ! apt_install $wanted; then
    apt update
    apt_install $wanted
  fi
  left=$(missing_packages)
  [ -z "$left" ] || saw "apt-get succeeded, yet these are still missing: $left"
}

is_root_user() { [ "$(id -u)" = 0 ]; }

apt_install() { apt install --yes --no-install-recommends "$@"; }
