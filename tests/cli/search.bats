#!/usr/bin/env bats
# Search as a person types it, on real stores of four harnesses.

setup() { load helper; }

@test "a hit is a reference: the record round it holds the words" {
  run --separate-stderr bash -c 'tr-search --limit 3 pelican | tr-context -C 0 | jq -r .content'
  same 0 "$status"
  [[ "$output" == *pelican* ]]
}

@test "the words of a query need no quotes, and a flag comes after --" {
  same "$(tr-search -q token bucket | jq -c .id)" "$(tr-search -q 'token bucket' | jq -c .id)"
  run --separate-stderr tr-search --dry-run
  same 2 "$status"
  run --separate-stderr tr-search -- --dry-run
  ((status < 2))
}

@test "nothing matched is 1, and the account says what was looked through" {
  run -1 --separate-stderr tr-search zzzzzzzzzzz
  same "" "$output"
  [[ "$stderr" =~ ^"tr-search: 0 hits; searched "[0-9]+" of "[0-9]+" sessions, " ]]
}

@test "quiet is quiet" {
  run -0 --separate-stderr tr-search -q pelican
  same "" "$stderr"
}

@test "an empty query, a bad class, an unknown session and a bad pattern are 2, with nothing on standard output" {
  for words in "--|" "--class|no-such|x" "--session|no-such|x" "--match|regex|(" "--limit|-1|x" "--strict|a:b" "--since|soon|x"; do
    IFS='|' read -ra argv <<< "$words"
    [[ "$words" == "--|" ]] && argv=(-- "")
    run --separate-stderr tr-search "${argv[@]}"
    same 2 "$status"
    same "" "$output"
    [[ "$stderr" == "tr-search: "* ]]
  done
}

@test "what a literal finds is what extraction holds" {
  found=$(tr-search -q --match literal --limit 0 pelican | jq -r .session_id | sort -u)
  held=$(tr-list -q | tr-extract -q --full - \
    | jq -r 'select(.class != "self" and (.replayed | not))
      | [.session_id, .content, .thinking, (.tool_calls[] | .name, (.arguments | tostring))] | @json' \
    | grep -i pelican | jq -r '.[0]' | sort -u)
  same "$held" "$found"
}

@test "literal and regular expression agree" {
  same "$(tr-search -q --match literal --limit 0 pelican | jq -c '[.session_id, .id]')" \
    "$(tr-search -q --match regex --limit 0 '(?i)pelican' | jq -c '[.session_id, .id]')"
}

@test "a filter selects from what is found without it" {
  tr-search -q --limit 0 the pelican | jq -c '[.session_id, .id, .class]' | sort -u > every
  for filter in --role=user --class=tool-output --human --harness=codex --directory=alpha --tool=Bash; do
    tr-search -q --limit 0 "$filter" the pelican | jq -c '[.session_id, .id, .class]' | sort -u > some || true
    same "" "$(comm -23 some every | grep -v '"tool-input"]' || true)"
  done
  same '["user"]' "$(tr-search -q --role user --limit 0 pelican | jq -sc 'map(.role) | unique')"
  same '["human-text"]' "$(tr-search -q --human --limit 0 pelican | jq -sc 'map(.class) | unique')"
}

@test "the session that asks is left out with its family, and can be kept" {
  id=$(tr-search -q --limit 1 pelican | jq -r .session_id)
  export TR_CURRENT_SESSION=$id
  run -0 --separate-stderr tr-search pelican
  [[ "$output" != *"$id"* ]]
  [[ "$stderr" == *"the current session and its family are left out"* ]]
  run -0 --separate-stderr tr-search --include-current pelican
  [[ "$output" == *"$id"* ]]
}

@test "the envelope holds the account and the hits" {
  run -0 --separate-stderr tr-search --envelope --limit 2 pelican
  same '["coverage","hits"]' "$(jq -c 'keys' <<< "$output")"
  same true "$(jq '.coverage.complete and .coverage.searched == .coverage.in_scope' <<< "$output")"
  same 2 "$(jq '.hits | length' <<< "$output")"
}

@test "the report is one line a hit under its head, and no snippet can add another" {
  run -0 --separate-stderr tr-search -q --report --limit 5 the
  same "# do-android-dream-of-electric-sheep — query: the" "${lines[0]}"
  [[ "${lines[1]}" =~ ^[0-9]+" sessions searched, " ]]
  same 7 "${#lines[@]}"
}

@test "hits by session are one a session" {
  same "$(tr-search -q --group session --limit 0 the | jq -r .session_id | sort | uniq -d)" ""
}

@test "a second run indexes nothing, and a third finds a session gone" {
  cp -r "$TOTAL_RECALL_CLAUDE_ROOT" copy && chmod -R u+w copy
  export TOTAL_RECALL_CLAUDE_ROOT=$PWD/copy
  same '["indexed"]' "$(tr-index -H claude | jq -sc 'map(.status) | unique')"
  same '["unchanged"]' "$(tr-index -H claude | jq -sc 'map(.status) | unique')"
  gone=$(find copy -name '*.jsonl' | sort | head -n 1)
  rm "$gone"
  same 1 "$(tr-index -H claude | jq -s 'map(select(.status == "removed")) | length')"
}

@test "a session is dropped, and the next search brings it back" {
  id=$(tr-search -q -H claude --limit 1 pelican | jq -r .session_id)
  same '"removed"' "$(tr-index -H claude --drop "$id" | jq .status)"
  [[ "$(tr-search -q --no-refresh pelican || true)" != *"$id"* ]]
  [[ "$(tr-search -q pelican)" == *"$id"* ]]
}

@test "while another process writes the index, tr-index waits and then is 6, and search goes on" {
  tr-index -H claude > /dev/null
  python3 - "$TOTAL_RECALL_SHADOW_ROOT/claude/index/.tantivy-writer.lock" << 'EOF' &
import fcntl, sys, time
with open(sys.argv[1], "a") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    time.sleep(20)
EOF
  holder=$!
  sleep 1
  run --separate-stderr tr-index -H claude --wait 0.2 --rebuild
  same 6 "$status"
  [[ "$stderr" == *"is being written by another process"* ]]
  run -0 --separate-stderr tr-search -H claude pelican
  kill "$holder"
}

@test "a closed pipe ends a search quietly" {
  run bash -c 'tr-search --match literal --limit 0 e 2> err | head -n 1 > /dev/null; echo "${PIPESTATUS[0]}"'
  [[ "$output" == 141 || "$output" == 0 ]]
  [[ "$(cat err)" != *Traceback* ]]
}
