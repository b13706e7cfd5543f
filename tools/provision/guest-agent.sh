# The guest agent: a static Rust binary, PID 1 of every sandbox.
. "$SANDGLASS_PROVISION/toolchain.sh"
. "$SANDGLASS_PROVISION/stamp.sh"

guest_source=$SANDGLASS_ROOT/native/guest-agent
guest_binary=$SANDGLASS_CACHE/guest-agent/sandglass-guest
guest_stamp=$SANDGLASS_CACHE/stamps/guest-agent
# Named, because a static build applies its flags to build scripts and macros as well otherwise.
guest_target=x86_64-unknown-linux-gnu

step_title() { echo "guest agent"; }
step_detail() { echo "cargo build"; }
step_is_current() { [ -x "$guest_binary" ] && stamp_says "$guest_stamp" "$(guest_inputs)"; }
step_wanted() { echo "$guest_binary, built from $guest_source"; }
step_remedy() { if found_cargo; then echo "cd $guest_source && cargo build --release --locked --target $guest_target"; else echo "apt-get install rustc-web cargo-web"; fi; }

# By names that are the same in every clone: clones of one version share the machine's binary.
guest_inputs() {
  # shellcheck disable=SC2046 # file names of this repository hold no spaces
  (cd "$SANDGLASS_ROOT" && hash_of tools/provision/guest-agent.sh $(find native/guest-agent \( -name target -o -name tests \) -prune -o -type f -print | LC_ALL=C sort))
}

step_build() {
  inputs=$(guest_inputs)
  found_cargo || saw "no cargo, or one that is too old: $(cargo --version 2>&1 | head -n 1)"
  (cd "$guest_source" && cargo build --release --locked --target "$guest_target")
  cp "$guest_source/target/$guest_target/release/sandglass-guest" "$scratch/sandglass-guest"
  chmod 0755 "$scratch/sandglass-guest"
  mkdir -p "$(dirname "$guest_binary")"
  mv "$scratch/sandglass-guest" "$guest_binary"
  write_stamp "$guest_stamp" "$inputs"
}
