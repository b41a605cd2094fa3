# Sessions, prompts and tool calls of each day (UTC, by the start of the session), oldest day first.
#
#   tr-list | awk -f sessions_by_day.awk
#
# Prints day, sessions, prompts, tool calls, separated by tabs. Reads session rows as they are: a key in its quotes
# cannot occur inside a JSON string, where quotes are escaped.

function number(key) {
	return match($0, "\"" key "\":[0-9]+") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0 : 0
}

/"start_time":/ {
	day = match($0, /"start_time":"[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]/) ? substr($0, RSTART + 14, 10) : "-"
	sessions[day]++
	prompts[day] += number("user_count")
	calls[day] += number("tool_count")
}

END {
	for (day in sessions) printf "%s\t%d\t%d\t%d\n", day, sessions[day], prompts[day], calls[day] | "LC_ALL=C sort"
}
