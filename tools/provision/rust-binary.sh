# A static Rust binary of native/$rust_crate. A step that is one sets rust_crate, rust_binary, its name, and rust_title, and has this file's functions.
. "$SANDGLASS_PROVISION/toolchain.sh"
. "$SANDGLASS_PROVISION/stamp.sh"

rust_source=$SANDGLASS_ROOT/native/$rust_crate
rust_place=$SANDGLASS_CACHE/$rust_crate/$rust_binary
rust_stamp=$SANDGLASS_CACHE/stamps/$rust_crate
# Named, because a static build applies its flags to build scripts and macros as well otherwise.
rust_target=x86_64-unknown-linux-gnu

step_title() { echo "$rust_title"; }
step_detail() { echo "cargo build"; }
step_is_current() { [ -x "$rust_place" ] && stamp_says "$rust_stamp" "$(rust_inputs)"; }
step_wanted() { echo "$rust_place, built from $rust_source"; }
step_remedy() { if found_cargo; then echo "cd $rust_source && cargo build --release --locked --target $rust_target"; else echo "apt-get install rustc-web cargo-web"; fi; }

# By names that are the same in every clone: clones of one version share the machine's binary.
rust_inputs() {
  # shellcheck disable=SC2046 # file names of this repository hold no spaces
  (cd "$SANDGLASS_ROOT" && hash_of tools/provision/rust-binary.sh $(find "native/$rust_crate" \( -name target -o -name tests \) -prune -o -type f -print | LC_ALL=C sort))
}

step_build() {
  inputs=$(rust_inputs)
  found_cargo || saw "no cargo, or one that is too old: $(cargo --version 2>&1 | head -n 1)"
  (cd "$rust_source" && cargo build --release --locked --target "$rust_target")
  cp "$rust_source/target/$rust_target/release/$rust_binary" "$scratch/$rust_binary"
  chmod 0755 "$scratch/$rust_binary"
  mkdir -p "$(dirname "$rust_place")"
  mv "$scratch/$rust_binary" "$rust_place"
  write_stamp "$rust_stamp" "$inputs"
}
