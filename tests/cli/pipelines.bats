#!/usr/bin/env bats
# Pipelines as a person types them, on real stores of four harnesses.

setup() { load helper; }

@test "rows, ids, messages: the output of one program is the input of the next" {
  run --separate-stderr bash -o pipefail -c \
    'tr-list -H opencode | jq -r .session_id | head -3 | tr-extract --full - | jq -c "{ts,role,content}"'
  same 0 "$status"
  ((${#lines[@]} > 3))
}

@test "whole records are references too, and each session is visited once" {
  same "$(tr-list --roots --limit 5 | tr-extract --full - | jq -r .session_id | uniq | wc -l)" \
    "$(tr-list --roots --limit 5 | jq -c . | cat - <(tr-list --roots --limit 5) | tr-extract --full - | jq -r .session_id | uniq | wc -l)"
}

@test "raw lines split at the first two commas, and what is left is JSON" {
  for harness in opencode vibe claude codex; do
    same "$(tr-list -H $harness | jq -s 'map(.line_count) | add > 0')" true
    # Lone surrogates, which the source keeps, are JSON but too much for jq.
    tr-list -H $harness | tr-raw --include-injected - | cut -d, -f3- | grep -vi '\\u[dD][89a-fA-F]' | jq -c . > /dev/null
    same "" "$(tr-list -H $harness | tr-raw --include-injected - | cut -d, -f1 | sort -u | grep -vx -e user -e assistant -e tool -e thinking -e system || true)"
  done
}

@test "the times of raw lines sort as text" {
  run --separate-stderr bash -o pipefail -c "tr-raw -H claude --type user d6213968 | awk -F, '{print \$2}' | sort | head"
  same 0 "$status"
  same "$output" "$(sort <<< "$output")"
}

@test "raw lines sorted by their second field are still raw lines" {
  tr-raw -H opencode | LC_ALL=C sort -t, -k2 | cut -d, -f3- | jq -c . > /dev/null
}

@test "xargs hands ids to a program" {
  same "$(tr-list --roots -H claude --limit 4 | tr-user - | wc -l)" \
    "$(tr-list --roots -H claude --limit 4 | jq -r .session_id | xargs tr-user | wc -l)"
}

@test "head closing the pipe ends the program silently" {
  run -141 --separate-stderr bash -o pipefail -c 'tr-list | tr-raw - | head -n 1'
  same "" "$stderr"
  same 1 "${#lines[@]}"
}

@test "a slow reader gets every byte" {
  same "$(tr-list | tr-raw - | cksum)" "$(tr-list | tr-raw - | (sleep 1; cat) | cksum)"
}

@test "a full disk is a sentence and status 5" {
  run -5 --separate-stderr bash -c 'tr-list > /dev/full'
  same "tr-list: cannot write to standard output: No space left on device" "$stderr"
}

@test "prompts of tr-user are the user messages that nobody injected" {
  for harness in opencode vibe claude codex; do
    same "$(tr-list -H $harness | tr-extract --full - | jq -c 'select(.role == "user" and (.injected | not)) | .content')" \
      "$(tr-list -H $harness | tr-user - | jq -c .content)"
  done
}

@test "the counts of a row are the counts of its messages" {
  # OpenCode is left out: of its records several may make up one prompt, which counts once.
  counts='[.session_id, .user_count, .tool_count] | @tsv'
  tr-list -H vibe -H claude -H codex > list
  jq -r "$counts" list | sort > rows
  tr-extract --full - < list \
    | jq -s -r 'map(select(.role != "user" or .agent != "sidechain")) | group_by(.session_id)[] | [.[0].session_id,
        ([.[] | select(.role == "user" and (.injected | not) and .replayed != true)] | length),
        ([.[] | select(.replayed != true and .authorship == "model") | .tool_calls | length] | add // 0)] | @tsv' \
    | sort > messages
  # sessions without a message are in the first only
  same "" "$(comm -13 rows messages)"
}

@test "bounds walked by next_offset give the whole session" {
  session=$(tr-list -H claude --roots | jq -r 'select(.line_count > 60) | .session_id' | head -1)
  offset=0
  while [ "$offset" != null ]; do
    tr-extract --full --envelope --limit 7 --offset "$offset" "$session" > page
    jq -r '.messages[].id' page >> walked
    offset=$(jq .bounds.next_offset page)
  done
  same "$(tr-extract --full "$session" | jq -r .id)" "$(cat walked)"
}

@test "an extraction without --full is the end of the whole one" {
  for session in $(tr-list | jq -r 'select(.has_compaction) | .session_id'); do
    tr-extract "$session" > part
    same "$(tail -n "$(wc -l < part)" <(tr-extract --full "$session"))" "$(cat part)"
    jq -e -s 'any(.class == "compaction")' part > /dev/null
  done
}

@test "rows for people fit 80 and 200 columns" {
  for width in 80 200; do
    tr-list | COLUMNS=$width tr-fmt > page
    same "" "$(jq -R -r "select(length > $width)" page)"
  done
  run ! grep -q $'\e' page
}

@test "tr-resume prints a command that the shell takes as it is" {
  session=$(tr-list -H claude --roots --limit 1 | jq -r .session_id)
  run --separate-stderr tr-resume --json "$session"
  same claude "$(jq -r '.argv[0]' <<< "$output")"
  bash -n <(tr-resume "$session" 2> /dev/null)
}

@test "total-recall runs a program by its bare name and by its old name" {
  same "$(tr-list --limit 3)" "$(total-recall ls 2> /dev/null || total-recall list --json --limit 3 | jq -c '.[]')"
  session=$(tr-list -H claude --roots --limit 1 | jq -r .session_id)
  same "$(tr-user "$session" | jq -c .content)" "$(total-recall --harness claude --session "$session" user-messages | jq -c '.[]')"
  same "$(tr-extract --full "$session")" "$(total-recall extract --full --session "$session")"
}
