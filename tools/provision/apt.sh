# apt-get, patient with whoever else uses it. For steps: what it printed last stands in $work/apt.out.

apt_lock_wait_s=300

# apt-get waits for dpkg's lock by itself, but not for the lock on the lists: that one is tried again, for as long.
apt() {
  deadline=$(($(date +%s) + apt_lock_wait_s))
  while :; do
    code=0
    DEBIAN_FRONTEND=noninteractive apt-get -q -o "DPkg::Lock::Timeout=$apt_lock_wait_s" -o Acquire::Retries=3 "$@" >"$work/apt.out" 2>&1 || code=$?
    cat "$work/apt.out"
    if [ "$code" = 0 ]; then return 0; fi
    if ! grep -q 'Could not get lock' "$work/apt.out" || [ "$(date +%s)" -ge "$deadline" ]; then return "$code"; fi
    sleep 1
  done
}
