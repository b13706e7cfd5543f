# A stamp holds the hash of a step's inputs, written after its result is in place: same hash, nothing to do.

# hash_of FILE… : names and contents, in the order given.
hash_of() { { printf '%s\n' "$@"; cat -- "$@"; } | sha256sum | cut -d ' ' -f 1; }

# stamp_says FILE HASH
stamp_says() {
  if [ ! -r "$1" ]; then return 1; fi
  read -r stamp_content <"$1" || return 1
  [ "$stamp_content" = "$2" ]
}

# write_stamp FILE HASH
write_stamp() {
  mkdir -p "$(dirname "$1")"
  echo "$2" >"$1.new"
  mv "$1.new" "$1"
}
