#!/bin/sh
# Builds the base template: build.sh IMAGE ROOT. ROOT is where the tree is put together; the caller removes it.
#
# The same packages give the same bytes: what a build adds of its own (dates, logs, caches, ids) is removed or fixed.
# Files keep the times that their packages gave them, because Python's compiled modules are valid only for the source
# times they recorded; with one time for all, every import in every sandbox would compile again.
set -eu

image=$1
root=$2
here=$(dirname "$(readlink -f "$0")")
suite=bookworm

# The mirrors that this machine already uses for that suite; none known means mmdebstrap's own default.
sources() {
  # shellcheck disable=SC2016 # apt's fields, not the shell's
  apt-get indextargets --format '$(ORIGIN)|$(CODENAME)|deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
    sed -n "s/^Debian|${suite}[a-z-]*|//p" | grep ' main$' | sort -u
}

started=$(mktemp)
trap 'rm -f "$started"' EXIT

sources >"$started"
if [ -s "$started" ]; then set -- -; else set --; fi

mmdebstrap --quiet --mode=root --variant=minbase \
  --include="$(paste -s -d , "$here/packages.txt")" \
  --aptopt='APT::Install-Recommends "false"' \
  --aptopt='Acquire::Languages "none"' \
  --aptopt='Acquire::Retries "3"' \
  --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-include=/usr/share/doc/*/copyright' \
  --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/info/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook="$here/customise.sh" \
  "$suite" "$root" "$@" <"$started"
rm -rf "$root"/var/cache/apt/archives/*.deb
# The mount point of the guest agent's channel; mmdebstrap empties /run when it is done.
install -d -m 0755 "$root/run/sandglass"

# What this build wrote carries the time of the newest packaged file.
newest=$(find "$root" -xdev ! -newer "$started" -printf '%T@\n' | sort -n | tail -n 1)
find "$root" -xdev -newer "$started" -exec touch --no-dereference --date="@${newest%.*}" {} +

# Uncompressed: page cache and start time matter more than disk, and gVisor can read such an image by itself.
mkfs.erofs --quiet -E noinline_data,nosbcrc -U 00000000-0000-0000-0000-000000000000 "$image" "$root"
# The superblock's time of creation (8 bytes and 4 of nanoseconds) is the one field that no option fixes.
dd if=/dev/zero of="$image" bs=1 seek=1048 count=12 conv=notrunc status=none
