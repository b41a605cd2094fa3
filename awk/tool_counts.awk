# How often each tool was called, and in how many sessions, the busiest first.
#
#   tr-list --hours 168 | tr-profile - | awk -f tool_counts.awk
#
# Prints calls, sessions, tool, separated by tabs; a name is as JSON has it, without its quotes.

match($0, /"tools":\{/) {
	rest = substr($0, RSTART + RLENGTH)
	while (match(rest, /^,?"([^"\\]|\\.)*":[0-9]+/)) {
		entry = substr(rest, 1, RLENGTH)
		rest = substr(rest, RLENGTH + 1)
		sub(/^,?"/, "", entry)
		match(entry, /":[0-9]+$/)
		tool = substr(entry, 1, RSTART - 1)
		calls[tool] += substr(entry, RSTART + 2)
		sessions[tool]++
	}
}

END {
	for (tool in calls) printf "%d\t%d\t%s\n", calls[tool], sessions[tool], tool | "LC_ALL=C sort -k1,1nr -k2,2nr -k3"
}
