# Which steps run, in what order, and what happens when one fails or the user interrupts.
# Sourced by the launcher. A step is a file beside this one; step.sh says what it defines.

. "$SANDGLASS_PROVISION/progress.sh"
. "$SANDGLASS_PROVISION/lock.sh"

is_root() { [ "$(id -u)" = 0 ]; }

need_root() {
  if ! is_root; then
    say_failure "$1" 0 "root, for users, network namespaces, mounts and cgroups" "user $(id -un)" "sudo ./sandglass $1"
    exit 125
  fi
}

# provision STEP… [: STEP…]…   Groups run one after the other; the steps of a group run side by side.
provision() {
  if [ -z "$(pending_steps "$@")" ]; then return 0; fi
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  trap 'interrupted 130' INT
  trap 'interrupted 143' TERM HUP
  take_locks
  group=
  for word in "$@" :; do
    if [ "$word" = : ]; then
      run_group "$group"
      group=
    else
      group="$group $word"
    fi
  done
  release_locks
  trap - EXIT INT TERM HUP
  rm -rf "$work"
}

pending_steps() {
  for step in "$@"; do
    [ "$step" = : ] || step_is_current_now "$step" || echo "$step"
  done
}

step_is_current_now() { (. "$SANDGLASS_PROVISION/$1.sh" && step_is_current); }

run_group() {
  running=
  # shellcheck disable=SC2086 # a list of step names
  for step in $(pending_steps $1); do
    start_step "$step"
    running="$running $step"
  done
  failed=
  while [ -n "$running" ]; do
    still=
    for step in $running; do
      if [ -e "$work/$step.exit" ]; then finish_step "$step"; else still="$still $step"; fi
    done
    running=$still
    if [ -n "$running" ]; then
      show_live "$running"
      sleep 0.2
    fi
  done
  if [ -n "$failed" ]; then exit 125; fi
}

# Each step leads a session of its own, so that one signal reaches all that it started, and a closed terminal none of it.
start_step() {
  date +%s >"$work/$1.started"
  (
    code=0
    if [ -n "$SANDGLASS_VERBOSE" ]; then
      setsid -w sh "$SANDGLASS_PROVISION/step.sh" "$1" "$work" >&2 </dev/null || code=$?
    else
      setsid -w sh "$SANDGLASS_PROVISION/step.sh" "$1" "$work" >"$work/$1.log" 2>&1 </dev/null || code=$?
    fi
    echo "$code" >"$work/$1.exit.new"
    mv "$work/$1.exit.new" "$work/$1.exit"
  ) &
}

finish_step() {
  seconds=$(($(date +%s) - $(cat "$work/$1.started")))
  if [ "$(cat "$work/$1.exit")" = 0 ]; then
    say_done "$(cat "$work/$1.title")" "$(cat "$work/$1.detail")" "$seconds"
    return
  fi
  failed="$failed $1"
  say_failure "$(cat "$work/$1.title")" "$seconds" "$(cat "$work/$1.wanted")" "$(what_was_seen "$1")" "$(cat "$work/$1.remedy")"
}

# A step may name what it saw; otherwise the last line that its tools printed is the best witness.
what_was_seen() {
  if [ -s "$work/$1.saw" ]; then
    cat "$work/$1.saw"
  elif [ -s "$work/$1.log" ]; then
    keep_log "$1"
    grep -v '^[[:space:]]*$' "$work/$1.log" | tail -n 1 | tr -d '\033' | cut -c 1-300
  else
    echo "exit code $(cat "$work/$1.exit")"
  fi
}

keep_log() {
  if mkdir -p "$SANDGLASS_CACHE/log" 2>/dev/null && cp "$work/$1.log" "$SANDGLASS_CACHE/log/$1.log" 2>/dev/null; then
    echo "(all of it: $SANDGLASS_CACHE/log/$1.log)"
  fi
}

interrupted() {
  trap '' INT TERM HUP
  clear_live
  for step in $running; do signal_step "$step" TERM; done
  tries=0
  while [ "$tries" -lt 50 ] && any_alive; do
    tries=$((tries + 1))
    sleep 0.2
  done
  for step in $running; do signal_step "$step" KILL; done
  say "  interrupted; the same command goes on from here"
  exit "$1"
}

signal_step() { [ ! -s "$work/$1.session" ] || kill -s "$2" -- "-$(cat "$work/$1.session")" 2>/dev/null || true; }

any_alive() {
  for step in $running; do
    [ -e "$work/$step.exit" ] || return 0
  done
  return 1
}
