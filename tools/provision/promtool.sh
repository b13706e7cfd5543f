# promtool, which checks what deploy/ has for Prometheus: an installed one, else the one in Debian's package, taken out of it
# because installing that would start a Prometheus. Only tests need it.
. "$SANDGLASS_PROVISION/apt.sh"

promtool_binary=$SANDGLASS_CACHE/bin/promtool

step_title() { echo "promtool"; }
step_detail() { if path=$(command -v promtool); then echo "found $path"; else echo "out of Debian's prometheus"; fi; }
step_is_current() { [ -x "$promtool_binary" ]; }
step_wanted() { echo "$promtool_binary, out of Debian's package prometheus, which is not installed"; }
step_remedy() { echo "apt-get update && apt-get download prometheus   (or install promtool on the PATH)"; }

step_build() {
  if path=$(command -v promtool); then
    ln -s "$path" "$scratch/promtool"
  else
    take_promtool
  fi
  "$scratch/promtool" --version >/dev/null 2>&1 || saw "a promtool that does not run here"
  mkdir -p "$(dirname "$promtool_binary")"
  mv -f "$scratch/promtool" "$promtool_binary"
}

take_promtool() {
  command -v apt-get >/dev/null 2>&1 || saw "no apt-get here, and no promtool on the PATH"
  cd "$scratch" || exit
  # Lists are fetched only where the package is unknown or gone from the mirror.
  apt download prometheus || { apt update && apt download prometheus; }
  dpkg-deb -x prometheus_*.deb package
  mv package/usr/bin/promtool promtool
}
