# Two launchers must not build at once: one lock for the machine's cache, one for this clone's node_modules.
# The steps inherit both, so a step that outlives a killed launcher still keeps others out.

lock_wait_s=1800

take_locks() {
  if mkdir -p "$SANDGLASS_CACHE" 2>/dev/null && [ -w "$SANDGLASS_CACHE" ]; then
    exec 9>>"$SANDGLASS_CACHE/provision.lock"
    take_lock 9
  fi
  exec 8<"$SANDGLASS_ROOT/package-lock.json"
  take_lock 8
}

take_lock() {
  if ! flock -n "$1"; then
    say "  another ./sandglass is installing on this machine; waiting for it"
    if ! flock -w "$lock_wait_s" "$1"; then
      say_failure "lock" "$lock_wait_s" "the other installation to end" "it still holds $SANDGLASS_CACHE/provision.lock" "fuser -v $SANDGLASS_CACHE/provision.lock"
      exit 125
    fi
  fi
}

release_locks() { exec 8<&- 9>&-; }
