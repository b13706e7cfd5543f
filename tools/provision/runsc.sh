# gVisor's runsc: an installed one at or above the floor, else the pinned module built with Go. Either must prove itself
# by running a command before it is put in place.
. "$SANDGLASS_PROVISION/toolchain.sh"
. "$SANDGLASS_PROVISION/stamp.sh"

runsc_version=20260905
runsc_module=gvisor.dev/gvisor/runsc@v0.0.0-20260905035102-160fafc42237
go_toolchain=go1.26.8
runsc_binary=$SANDGLASS_CACHE/bin/runsc
runsc_stamp=$SANDGLASS_CACHE/stamps/runsc

step_title() { echo "runsc"; }
step_detail() { if path=$(found_runsc); then echo "found $path"; else echo "$runsc_version, go install"; fi; }
step_is_current() { [ -x "$runsc_binary" ] && stamp_says "$runsc_stamp" "$(runsc_inputs)"; }
step_wanted() { echo "a runsc at or above $runsc_floor that runs here, or Go to build $runsc_version"; }
step_remedy() {
  if found_go; then
    echo "./sandglass up --verbose   (or install runsc $runsc_floor or newer on the PATH)"
  else
    echo "apt-get install golang-go   (or install runsc $runsc_floor or newer on the PATH)"
  fi
}

runsc_inputs() { echo "$runsc_module or an installed one from $runsc_floor on"; }

step_build() {
  inputs=$(runsc_inputs)
  if path=$(found_runsc); then
    ln -s "$path" "$scratch/runsc"
  else
    build_runsc
  fi
  prove_runsc "$scratch/runsc"
  mkdir -p "$(dirname "$runsc_binary")"
  mv -f "$scratch/runsc" "$runsc_binary"
  write_stamp "$runsc_stamp" "$inputs"
}

build_runsc() {
  found_go || saw "no Go, and no runsc on the PATH at or above $runsc_floor"
  version=$(go_version)
  if version_at_least "$version" "$go_floor"; then
    go_install go
  elif version_at_least "$version" "$go_toolchain_floor"; then
    GOTOOLCHAIN=$go_toolchain go_install go
  else
    fetch_go
    GOTOOLCHAIN=local go_install "$scratch/go/bin/go"
  fi
}

go_install() {
  CGO_ENABLED=0 GOFLAGS='' GOBIN="$scratch" "$1" install -trimpath -ldflags "-s -w -X gvisor.dev/gvisor/runsc/version.version=$runsc_version" "$runsc_module"
}

# A Go too old to fetch toolchains by itself can still fetch a module, and toolchains are modules. A module archive
# carries no permission bits, so the programs are marked by hand.
fetch_go() {
  mkdir "$scratch/modules"
  (cd "$scratch/modules" && GOFLAGS=-modcacherw GOMODCACHE=$scratch/modules go mod download "golang.org/toolchain@v0.0.1-$go_toolchain.linux-amd64")
  mv "$scratch/modules/golang.org/toolchain@v0.0.1-$go_toolchain.linux-amd64" "$scratch/go"
  find "$scratch/go/bin" "$scratch/go/pkg/tool" -type f -exec chmod 0755 {} +
}

prove_runsc() {
  mkdir "$scratch/proof"
  said=$("$1" --root="$scratch/proof" --network=none --ignore-cgroups "do" /bin/echo runs 2>&1) || true
  umount "$scratch/proof/null-netns" 2>/dev/null || true
  case "$said" in
    *runs*) ;;
    *) saw "$("$1" --version 2>&1 | head -n 1) does not run a command here: $(printf '%s' "$said" | tail -n 1)" ;;
  esac
}
