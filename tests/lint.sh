#!/bin/sh
# The linters of shell, bats and man pages. A missing one fails in CI and is named elsewhere.
set -u
status=0

have() {
  command -v "$1" >/dev/null && return 0
  if [ "${CI:-}" = true ]; then
    echo "lint: $1 is missing" >&2
    status=1
  else
    echo "lint: $1 is not installed, skipped" >&2
  fi
  return 1
}

if have shellcheck; then
  # SC2154: bats' run sets output, stderr and lines.
  find tests .ci -type f \( -name '*.sh' -o -name '*.bash' -o -name '*.bats' -o -name run \) \
    -exec shellcheck -x -e SC2154 {} + || status=1
fi
if have mandoc; then
  for page in man/man*/*; do
    said=$(mandoc -T lint -W warning "$page") || true
    if [ -n "$said" ]; then
      printf '%s\n' "$said"
      status=1
    fi
  done
fi
exit $status
