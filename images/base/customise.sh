#!/bin/sh
# Runs when the packages are in place: customise.sh ROOT.
set -eu
root=$1

chroot "$root" useradd --create-home --uid 1000 --user-group --shell /bin/bash user
install -d -m 0755 -o 1000 -g 1000 "$root/workspace"

# A sandbox has loopback only; its host name is set at start.
printf '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n' >"$root/etc/hosts"
echo sandbox >"$root/etc/hostname"
: >"$root/etc/resolv.conf"
: >"$root/etc/machine-id"
echo LANG=C.UTF-8 >"$root/etc/default/locale"

# Days of the last password change.
sed -i -E 's/^([^:]*:[^:]*:)[0-9]+:/\120000:/' "$root/etc/shadow"
rm -f "$root"/etc/passwd- "$root"/etc/group- "$root"/etc/shadow- "$root"/etc/gshadow- "$root"/etc/subuid- "$root"/etc/subgid-
rm -rf "$root"/var/cache/ldconfig "$root"/var/cache/apt/*.bin "$root"/var/cache/debconf/*-old "$root"/var/lib/apt/lists/* "$root"/var/lib/dpkg/*-old "$root"/tmp/*
find "$root/var/log" -type f -delete
