# What the user sees: one line per step that did something, one line that moves while steps run on a terminal.

on_terminal=
if [ -t 2 ] && [ "${TERM:-dumb}" != dumb ] && [ -z "$SANDGLASS_VERBOSE" ]; then on_terminal=1; fi

say() { printf '%s\n' "$*" >&2; }

# say_done TITLE DETAIL SECONDS
say_done() {
  clear_live
  printf '  %-22s %-40s %4s s\n' "$1" "$(shorten "$2" 40)" "$3" >&2
}

# say_failure TITLE SECONDS WANTED SAW TYPE
say_failure() {
  clear_live
  printf '  %-22s failed after %s s\n    wanted  %s\n    saw     %s\n    type    %s\n' "$1" "$2" "$3" "$(indent "$4")" "$5" >&2
}

indent() { printf '%s\n' "$1" | sed '2,$s/^/            /'; }

# Plain ASCII, because the shell counts bytes when it pads a column.
shorten() { if [ "${#1}" -le "$2" ]; then echo "$1"; else printf '%s...\n' "$(printf '%s' "$1" | cut -c "1-$(($2 - 3))")"; fi; }

# show_live STEPS : the steps that run, with their age, rewritten in place.
show_live() {
  if [ -z "$on_terminal" ]; then return 0; fi
  line=
  for step in $1; do
    if [ -s "$work/$step.title" ]; then
      line="$line$(cat "$work/$step.title") $(($(date +%s) - $(cat "$work/$step.started"))) s   "
    fi
  done
  columns=$(stty size </dev/tty 2>/dev/null | cut -d ' ' -f 2)
  if [ "${columns:-0}" -lt 20 ]; then columns=80; fi
  printf '\r\033[K  %s' "$(shorten "$line" "$((columns - 4))")" >&2
}

clear_live() { if [ -n "$on_terminal" ]; then printf '\r\033[K' >&2; fi; }
