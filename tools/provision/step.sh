#!/bin/sh
# Runs one step: sh step.sh NAME WORK, as leader of its own session.
#
# A step's file defines: step_title, step_detail (what it does, a few words), step_is_current (cheap, no network),
# step_build, step_wanted and step_remedy (the two lines of a failure besides what was seen).
# step_build runs under set -e, builds in $scratch (on the cache's own file system, removed afterwards) and renames.
set -eu
umask 022

name=$1
work=$2
echo $$ >"$work/$name.session"
. "$SANDGLASS_PROVISION/$name.sh"

step_title >"$work/$name.title"
step_detail >"$work/$name.detail"
step_wanted >"$work/$name.wanted"
step_remedy >"$work/$name.remedy"

saw() {
  echo "$*" >"$work/$name.saw"
  exit 1
}

# What an interrupted run left is of no use: nobody else builds, the lock is held.
scratch=
if [ -z "${step_without_scratch:-}" ]; then
  mkdir -p "$SANDGLASS_CACHE/tmp"
  rm -rf --one-file-system "$SANDGLASS_CACHE/tmp/$name".*
  scratch=$(mktemp -d "$SANDGLASS_CACHE/tmp/$name.XXXXXX")
  trap 'rm -rf --one-file-system "$scratch"' EXIT
  trap 'exit 143' TERM INT HUP
fi

step_build
# Both may have become more exact: a version, a size.
step_title >"$work/$name.title"
step_detail >"$work/$name.detail"
