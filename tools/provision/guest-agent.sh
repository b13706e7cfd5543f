# The guest agent: a static Rust binary, PID 1 of every sandbox.
rust_title="guest agent"
rust_crate=guest-agent
rust_binary=sandglass-guest
. "$SANDGLASS_PROVISION/rust-binary.sh"
