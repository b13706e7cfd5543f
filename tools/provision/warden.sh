# The warden: a static Rust binary beside the host agent that freezes sandboxes when the host’s lease has run out.
. "$SANDGLASS_PROVISION/toolchain.sh"
. "$SANDGLASS_PROVISION/stamp.sh"

warden_source=$SANDGLASS_ROOT/native/warden
warden_binary=$SANDGLASS_CACHE/warden/sandglass-warden
warden_stamp=$SANDGLASS_CACHE/stamps/sandglass-warden
# Named, because a static build applies its flags to build scripts and macros as well otherwise.
warden_target=x86_64-unknown-linux-gnu

step_title() { echo "warden"; }
step_detail() { echo "cargo build"; }
step_is_current() { [ -x "$warden_binary" ] && stamp_says "$warden_stamp" "$(warden_inputs)"; }
step_wanted() { echo "$warden_binary, built from $warden_source"; }
step_remedy() { if found_cargo; then echo "cd $warden_source && cargo build --release --locked --target $warden_target"; else echo "apt-get install rustc-web cargo-web"; fi; }

# By names that are the same in every clone: clones of one version share the machine's binary.
warden_inputs() {
  # shellcheck disable=SC2046 # file names of this repository hold no spaces
  (cd "$SANDGLASS_ROOT" && hash_of tools/provision/warden.sh $(find native/warden \( -name target -o -name tests \) -prune -o -type f -print | LC_ALL=C sort))
}

step_build() {
  inputs=$(warden_inputs)
  found_cargo || saw "no cargo, or one that is too old: $(cargo --version 2>&1 | head -n 1)"
  (cd "$warden_source" && cargo build --release --locked --target "$warden_target")
  cp "$warden_source/target/$warden_target/release/sandglass-warden" "$scratch/sandglass-warden"
  chmod 0755 "$scratch/sandglass-warden"
  mkdir -p "$(dirname "$warden_binary")"
  mv "$scratch/sandglass-warden" "$warden_binary"
  write_stamp "$warden_stamp" "$inputs"
}
