# Loaded by every .bats file: our executables first on PATH, the sample stores, a home and derived state of its own.
bats_require_minimum_version 1.5.0

root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
export PATH="$root/bin:$PATH"
export LC_ALL=C.UTF-8 TZ=UTC HOME="$BATS_TEST_TMPDIR/home" TOTAL_RECALL_SANDBOX=1
export TOTAL_RECALL_SHADOW_ROOT="$BATS_TEST_TMPDIR/shadow"
export TOTAL_RECALL_OPENCODE_ROOT="$SAMPLE/opencode/opencode"
export TOTAL_RECALL_VIBE_ROOT="$SAMPLE/vibe/logs/session"
export TOTAL_RECALL_CLAUDE_ROOT="$SAMPLE/claude/.claude/projects"
export TOTAL_RECALL_CODEX_ROOT="$SAMPLE/codex/.codex/sessions"
export TOTAL_RECALL_GEMINI_ROOT="$SAMPLE/gemini/.gemini/tmp"
export TOTAL_RECALL_QWEN_ROOT="$SAMPLE/qwen/.qwen/projects"
export TOTAL_RECALL_PI_ROOT="$SAMPLE/pi/.pi/agent/sessions"
export TOTAL_RECALL_COPILOT_ROOT="$SAMPLE/copilot/.copilot/session-state"
unset TR_HARNESS HARNESS TR_CURRENT_SESSION COLUMNS
mkdir -p "$HOME"
cd "$BATS_TEST_TMPDIR" || exit
set -o pipefail

# same EXPECTED ACTUAL: a diff, and failure, unless they are equal
same() {
  diff -u <(printf '%s\n' "$1") <(printf '%s\n' "$2")
}

# A missing tool fails where everything is installed, and is skipped with a word elsewhere.
if ! command -v jq > /dev/null; then
  [ "${CI:-}" = true ] && return 1
  skip "jq is not installed"
fi
