# The warden: a static Rust binary beside the host agent that freezes sandboxes when the host’s lease has run out.
rust_title=warden
rust_crate=warden
rust_binary=sandglass-warden
. "$SANDGLASS_PROVISION/rust-binary.sh"
