#!/bin/sh
# The main job, on the bundled sample of real stores: run by `make demo`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sample=$(mktemp -d)
trap 'rm -rf "$sample"' EXIT INT TERM

# A copy, since SQLite may have to make a -shm beside a live database.
cp -R "$here/fixtures/opencode/main-1.18.33" "$sample/opencode"
cp -R "$here/fixtures/vibe/legacy-2.18.4" "$sample/vibe"
cp -R "$here/fixtures/claude" "$sample/claude"
cp -R "$here/fixtures/codex" "$sample/codex"
export TOTAL_RECALL_SANDBOX=1 TOTAL_RECALL_SHADOW_ROOT="$sample/shadow"
export TOTAL_RECALL_OPENCODE_ROOT="$sample/opencode/opencode"
export TOTAL_RECALL_VIBE_ROOT="$sample/vibe/logs/session"
export TOTAL_RECALL_CLAUDE_ROOT="$sample/claude/.claude/projects"
export TOTAL_RECALL_CODEX_ROOT="$sample/codex/.codex/sessions"

show() {
  printf '\n$ %s\n' "$1"
  sh -c "$1"
}

show "tr-stores | tr-fmt"
show "tr-list --roots | grep -v '\"empty\":true' | tr-fmt | head -n 12"
show "tr-extract --full c43b9ab4 | tr-fmt | head -n 24"
show "tr-search 'which bird' --limit 4 | tr-fmt"
command -v jq > /dev/null \
  && show "tr-list | tr-extract --full - | jq -r '.tool_calls[].name' | sort | uniq -c | sort -rn | head -n 5"
printf '\nNext: man -M %s/man 7 total-recall\n' "$(dirname "$here")"
