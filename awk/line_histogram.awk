# Profile of a big file: how its bytes are spread over position and over line size. Or some of its lines.
#
#   LC_ALL=C awk -f line_histogram.awk FILE
#   LC_ALL=C awk -v line=977 -f line_histogram.awk FILE
#   LC_ALL=C awk -v start=10 -v end=20 -f line_histogram.awk FILE
#
# For any POSIX awk. The file is read twice, a line at a time, and by its name alone: one with "=" in it is no
# assignment (put "./" before one that begins with "-"). Sizes are in bytes, newlines included.
#
# name: what to call the file.  size: its size, for a last line without a newline (else it is taken to have one).

BEGIN {
	file = ARGV[1]
	if (name == "") name = file
	if (line) start = end = line
	power[0] = 1
	for (i = 1; i < 20; i++) power[i] = 10 * power[i - 1]
	status = start ? extract() : histogram()
	exit status
}

function extract(    text, n) {
	while ((getline text < file) > 0) {
		if (++n >= start) print text
		if (n >= end) return 0
	}
	if (n >= start) return 0
	printf "line %.0f is past the end: the file has %.0f lines\n", start, n | "cat 1>&2"
	return 1
}

function histogram(    text, n, class, got) {
	while ((got = (getline text < file)) > 0) {
		lines++
		bytes = length(text) + 1
		total += bytes
		if (bytes > longest) { longest = bytes; where = lines }
		class = class_of(bytes)
		class_lines[class]++
		class_bytes[class] += bytes
		if (class > top) top = class
	}
	close(file)
	if (got < 0) {
		printf "cannot read %s\n", file | "cat 1>&2"
		return 1
	}
	# The newline that the last line does not have
	missing = size != "" && size + 1 == total
	if (missing) {
		total--
		class_bytes[class_of(bytes)]--
		if (where == lines) longest--
	}
	printf "File: %s\nBytes: %.0f\nLines: %.0f\n", name, total, lines
	if (!lines) return 0
	printf "Longest line: %.0f (%.0f bytes)\n", where, longest
	by_position()
	by_size()
	return 0
}

function class_of(amount,    class) {
	for (class = 0; amount >= power[class + 1]; class++) { }
	return class
}

# Ten buckets, or one a line: their numbers of lines differ by one at most.
function by_position(    buckets, bucket, n, text, last, from, i, most) {
	buckets = lines < 10 ? lines : 10
	for (bucket = 1; bucket <= buckets; bucket++) {
		last = int(bucket * lines / buckets)
		while (n < last && (getline text < file) > 0) {
			n++
			position[bucket] += length(text) + 1
		}
		until[bucket] = last
	}
	close(file)
	if (missing) position[buckets]--
	for (i = 1; i <= buckets; i++) if (position[i] > most) most = position[i]
	printf "\nBucket Distribution:\n\n%-21s %13s  %6s\n", "lines", "bytes", "share"
	for (i = 1; i <= buckets; i++) {
		printf "%-21s %13.0f  %5.1f%%%s\n", range(from + 1, until[i]), position[i], share(position[i]), bar(position[i], most)
		from = until[i]
	}
}

function by_size(    class, most, label, amount) {
	for (class = 0; class <= top; class++) if (class_bytes[class] > most) most = class_bytes[class]
	printf "\n%-21s %11s %13s  %6s\n", "bytes in a line", "lines", "bytes", "share"
	for (class = 0; class <= top; class++) {
		if (!class_lines[class]) continue
		label = range(class ? power[class] : 1, power[class + 1] - 1)
		amount = class_bytes[class]
		printf "%-21s %11.0f %13.0f  %5.1f%%%s\n", label, class_lines[class], amount, share(amount), bar(amount, most)
	}
}

function range(from, to) {
	return from == to ? sprintf("%.0f", from) : sprintf("%.0f-%.0f", from, to)
}

function share(amount) {
	return total ? 100 * amount / total : 0
}

function bar(amount, most,    text, n) {
	for (n = most ? int(16 * amount / most + 0.5) : 0; n > 0; n--) text = text "#"
	return text == "" ? "" : "  " text
}
