#!/usr/bin/env bats
# The messages round a record, on real stores of four harnesses.

setup() { load helper; }

@test "the context of any record is a slice of the session" {
  for harness in opencode vibe claude codex; do
    id=$(tr-list -q -H $harness --roots | jq -r 'select(.line_count > 8) | .session_id' | head -n 1)
    tr-extract -q --full "$id" > whole
    for place in 1 4 $(($(wc -l < whole) - 1)); do
      number=$(sed -n "${place}p" whole | jq .id)
      same "$(sed -n "$((place > 2 ? place - 2 : 1)),$((place + 1))p" whole)" "$(tr-context -B 2 -A 1 "$id:$number")"
      same "$(sed -n "${place}p" whole)" "$(tr-context -C 0 "$id:$number")"
    done
  done
}

@test "id 0 is the beginning of the session" {
  id=$(tr-list -q --limit 1 | jq -r .session_id)
  same "$(tr-extract -q --full "$id" | head -n 3)" "$(tr-context -A 2 "$id:0")"
}

@test "the turn goes from one prompt to the next" {
  id=$(tr-list -q -H claude --roots | jq -r 'select(.user_count > 2) | .session_id' | head -n 1)
  tr-extract -q --full "$id" > whole
  second=$(jq -c 'select(.class == "human-text") | .id' whole | sed -n 2p)
  run -0 --separate-stderr tr-context --human "$id:$((second + 1))"
  same "$second" "$(head -n 1 <<< "$output" | jq .id)"
  same 1 "$(jq -c 'select(.class == "human-text")' <<< "$output" | wc -l)"
}

@test "references come from standard input, with and without -" {
  same "$(tr-search -q --limit 2 pelican | tr-context -C 1)" "$(tr-search -q --limit 2 pelican | tr-context -C 1 -)"
}

@test "a record that is not there is refused" {
  id=$(tr-list -q --limit 1 | jq -r .session_id)
  run -2 --separate-stderr tr-context "$id:999999"
  same "tr-context: $id has no record 999999 - tr-extract --full prints those that there are" "$stderr"
}

@test "the header is a line of its own" {
  id=$(tr-list -q | jq -r 'select(.user_count > 0) | .session_id' | head -n 1)
  run -0 --separate-stderr tr-context --header -C 0 "$id:1"
  [[ "${lines[0]}" == "# {\"session_id\":\"$id\""* ]]
  same 2 "${#lines[@]}"
}

@test "what is no reference is 2" {
  for word in "abc" "abc:" "abc:x" "nosuchsession:1"; do
    run --separate-stderr tr-context "$word"
    same 2 "$status"
    same "" "$output"
  done
}
