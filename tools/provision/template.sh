# The base template: Debian packages as one read-only EROFS file, named by its digest; the manifest says which is current.
. "$SANDGLASS_PROVISION/stamp.sh"

recipe=$SANDGLASS_ROOT/images/base
templates=$SANDGLASS_CACHE/templates
template_manifest=$templates/base.json
template_stamp=$SANDGLASS_CACHE/stamps/template

step_title() { echo "template base"; }
step_detail() { if step_is_current; then echo "mmdebstrap, $(template_field size_bytes | awk '{ printf "%d", $1 / 1000000 }') MB EROFS"; else echo "mmdebstrap, EROFS"; fi; }
step_is_current() { stamp_says "$template_stamp" "$(template_inputs)" && [ "$(stat -c %s "$templates/$(template_field file)" 2>/dev/null)" = "$(template_field size_bytes)" ]; }
step_wanted() { echo "$template_manifest and its EROFS file, from the packages in $recipe/packages.txt"; }
step_remedy() { echo "./sandglass up --verbose"; }

# By names that are the same in every clone: clones of one version share the machine's template.
template_inputs() { (cd "$recipe" && hash_of ./*); }

# template_field NAME : one plain value of the manifest, which this file wrote, one field a line
template_field() { sed -n "s/^  \"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$template_manifest" 2>/dev/null; }

step_build() {
  inputs=$(template_inputs)
  sh "$recipe/build.sh" "$scratch/base.erofs" "$scratch/root"
  digest=$(sha256sum "$scratch/base.erofs" | cut -d ' ' -f 1)
  file=base-$(printf '%s' "$digest" | cut -c 1-12).erofs
  mkdir -p "$templates"
  write_manifest >"$scratch/base.json"
  mv "$scratch/base.erofs" "$templates/$file"
  mv "$scratch/base.json" "$template_manifest"
  write_stamp "$template_stamp" "$inputs"
}

write_manifest() {
  cat <<END
{
  "name": "base",
  "digest": "sha256:$digest",
  "file": "$file",
  "size_bytes": $(stat -c %s "$scratch/base.erofs"),
  "packages": [$(sed 's/.*/"&"/' "$recipe/packages.txt" | paste -s -d ,)],
  "created_at": "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
}
END
}
