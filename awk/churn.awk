# The files that agents wrote most often, over all sessions given: where the work goes round in circles.
#
#   tr-list --hours 168 | tr-profile - | awk -f churn.awk | head
#
# Prints writes, reads, sessions, path, separated by tabs; files that were only read are left out. A path is as JSON
# has it, without its quotes.

match($0, /"files":\[/) {
	rest = substr($0, RSTART + RLENGTH)
	while (match(rest, /^,?\{"path":"([^"\\]|\\.)*","reads":[0-9]+,"writes":[0-9]+\}/)) {
		entry = substr(rest, 1, RLENGTH)
		rest = substr(rest, RLENGTH + 1)
		sub(/^,?\{"path":"/, "", entry)
		match(entry, /","reads":[0-9]+,"writes":[0-9]+\}$/)
		path = substr(entry, 1, RSTART - 1)
		split(substr(entry, RSTART), amount, /[:,}]/)
		reads[path] += amount[3]
		writes[path] += amount[5]
		sessions[path]++
	}
}

END {
	sort = "LC_ALL=C sort -k1,1nr -k2,2nr -k3,3nr -k4"
	for (path in writes) if (writes[path]) printf "%d\t%d\t%d\t%s\n", writes[path], reads[path], sessions[path], path | sort
}
