# Finds tools that are new enough. A tool that is there but does not run (a rustup proxy without a toolchain) is not there.

node_floor_major=18 # only to run npm; everything else runs on the locked Node.js that npm brings
go_toolchain_floor=1.21 # from here on, Go fetches the toolchain that a module asks for
go_floor=1.26.3 # what the pinned runsc asks for
runsc_floor=20260905 # from here on it counts the processes of a sandbox exactly (--in-sandbox-cgroup=v2)

# version_at_least VERSION FLOOR : dotted numbers
version_at_least() {
  [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]
}

found_npm() {
  command -v npm >/dev/null 2>&1 && major=$(node --version 2>/dev/null) || return 1
  major=${major#v}
  [ "${major%%.*}" -ge "$node_floor_major" ]
}

# The floor is the crate's own rust-version. Where the first cargo in PATH does not run, the first that does is put before it:
# what Debian installs stands behind a rustup proxy without a toolchain.
found_cargo() {
  rust_floor=$(sed -n 's/^rust-version *= *"\(.*\)"/\1/p' "$SANDGLASS_ROOT/native/guest-agent/Cargo.toml")
  if command -v cargo >/dev/null 2>&1 && rust_is_enough rustc; then return 0; fi
  rest=$PATH:
  while [ -n "$rest" ]; do
    folder=${rest%%:*}
    rest=${rest#*:}
    if [ -x "$folder/cargo" ] && rust_is_enough "$folder/rustc"; then
      PATH=$folder:$PATH
      return 0
    fi
  done
  return 1
}

rust_is_enough() {
  rust=$("$1" --version 2>/dev/null | cut -d ' ' -f 2)
  [ -n "$rust" ] && version_at_least "$rust" "${rust_floor:-1.85}"
}

go_version() { go version 2>/dev/null | sed -n 's/^go version go\([0-9.]*\).*/\1/p'; }

found_go() { command -v go >/dev/null 2>&1 && [ -n "$(go_version)" ]; }

# Prints the path of an installed runsc at or above the floor. Its version is a date, alone or behind "release-".
found_runsc() {
  candidate=$(command -v runsc 2>/dev/null) || return 1
  date=$("$candidate" --version 2>/dev/null | sed -n 's/^runsc version [^0-9]*\([0-9]\{8\}\).*/\1/p')
  if [ -z "$date" ] || [ "$date" -lt "$runsc_floor" ]; then return 1; fi
  echo "$candidate"
}
