#!/usr/bin/awk -f
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# report.awk -v plot=FILE ABOUT FIGURES - what bench/run has measured as Markdown; the points of the
# plot go to FILE. ABOUT: lines "KEY TEXT"; FIGURES: lines "RUN KEY NUMBER". Ends with status 1 if a
# goal is missed (in a quick run: far from reached).

FNR == NR {
	key = $1
	sub(/^[^ ]* ?/, "")
	lines[key]++
	about[key] = about[key] (lines[key] > 1 ? "\n" : "") $0
	next
}

{
	value[$1, $2] = $3
	if (match($1, /\.[0-9]+$/) && !(($1) in known)) {
		known[$1] = 1
		repeats[substr($1, 1, RSTART - 1)]++
	}
	ran[$1] = 1
}

# --- figures

function gb(run) {
	return value[run, "data_bytes"] / 1e9
}

# Seconds of CPU a GB; KEY may be "whole": all that the machine did beyond the unread baseline
function per_gb(run, key) {
	if (!gb(run) || (key == "whole" && baseline == ""))
		return ""
	return (key == "whole" ? value[run, "cpu_busy"] - baseline : value[run, key]) / gb(run)
}

function mega_events(run) {
	return value[run, "events"] ? value[run, "cpu"] / value[run, "events"] * 1e9 : ""
}

function written(run) {
	return gb(run) && value[run, "events"] ? \
		(value[run, "disk_bytes"] - value[run, "meta_bytes"]) / value[run, "data_bytes"] : ""
}

# Those the recorder knows of, and those that nobody knows of
function lost(run,   missing) {
	if (!value[run, "events"])
		return ""
	missing = 2 * value[run, "calls"] - value[run, "events"]
	return missing > value[run, "lost"] ? missing : value[run, "lost"]
}

function without_idle(run, tool) {
	sub(/^flyrec-.*/, "flyrec", tool)
	return gb(run) ? (value[run, "cpu"] - value["idle." tool, "cpu"]) / gb(run) : ""
}

function figure(run, what,   parts) {
	if (!(run in ran))
		return ""
	split(what, parts, " ")
	if (parts[1] == "per_gb")
		return per_gb(run, parts[2])
	if (parts[1] == "mega_events")
		return mega_events(run)
	if (parts[1] == "written")
		return written(run)
	if (parts[1] == "lost")
		return lost(run)
	if (parts[1] ~ /_ms$/) {
		sub(/_ms$/, "_seconds", parts[1])
		return (run, parts[1]) in value ? 1000 * value[run, parts[1]] : ""
	}
	if (parts[1] == "without_idle")
		return without_idle(run, parts[2])
	return value[run, parts[1]]
}

function sort(list, n,   i, j, x) {
	for (i = 2; i <= n; i++) {
		x = list[i]
		for (j = i - 1; j >= 1 && list[j] > x; j--)
			list[j + 1] = list[j]
		list[j + 1] = x
	}
}

# Of all repeats of a run, RUN.1, RUN.2, …; sets low and high too
function median(run, what,   i, n, x, list) {
	n = 0
	for (i = 1; i <= repeats[run]; i++) {
		x = figure(run "." i, what)
		if (x != "")
			list[++n] = x + 0
	}
	if (!n)
		return low = high = ""
	sort(list, n)
	low = list[1]
	high = list[n]
	return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}

# A figure of run A as part of the same of run B, in each round by itself: their median; sets low and
# high too. WHAT may be a sum, "X + Y".
function of_round(run, what,   parts, n, i, x, sum) {
	n = split(what, parts, " [+] ")
	for (i = 1; i <= n; i++) {
		x = figure(run, parts[i])
		if (x == "")
			return ""
		sum += x
	}
	return sum
}

function rounds(a, b, what,   i, n, x, list) {
	n = 0
	for (i = 1; i <= repeats[a]; i++) {
		x = ratio(of_round(a "." i, what), of_round(b "." i, what))
		if (x != "")
			list[++n] = x
	}
	if (!n)
		return low = high = ""
	sort(list, n)
	low = list[1]
	high = list[n]
	return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}

# --- Markdown

function text(x, format, scale) {
	return x == "" ? "–" : sprintf(format, x * (scale ? scale : 1))
}

# A table's head; "_" in a column's name is a blank
function head(title, list,   n, names, i, rule) {
	n = split(list, names, " ")
	printf "\n| %s |", title
	rule = "|---|"
	for (i = 1; i <= n; i++) {
		gsub(/_/, " ", names[i])
		printf " %s |", names[i]
		rule = rule "---:|"
	}
	print "\n" rule
}

# The median where a run was repeated
function best(run, what) {
	low = high = ""
	return run in repeats ? median(run, what) : figure(run, what)
}

# "2.5 (2.4–2.7)": with the least and the greatest, unless they print the same
function ranged(x, format, scale,   from, to) {
	from = text(low, format, scale)
	to = text(high, format, scale)
	x = text(x, format, scale)
	return low == "" || from == to ? x : x " (" from "–" to ")"
}

# One figure of several runs; "-" has none
function row(title, what, format, scale, list,   n, names, i) {
	n = split(list, names, " ")
	printf "| %s |", title
	for (i = 1; i <= n; i++)
		printf " %s |", ranged(best(names[i], what), format, scale)
	print ""
}

# A figure of several runs as part of that of another one
function ratio_row(title, what, other, format, list,   n, names, i) {
	n = split(list, names, " ")
	printf "| %s |", title
	for (i = 1; i <= n; i++)
		printf " %s |", ranged(rounds(names[i], other, what), format, 1)
	print ""
}

# No LIMIT: only told. With low and high set, they are told, too.
function goal(title, x, limit, format, unit, sane,   measured) {
	measured = ranged(x, format, 1) unit
	low = high = ""
	if (x == "")
		printf "| %s | – | %s | not measured |\n", title, limit == "" ? "" : sprintf("≤ " format "%s", limit, unit)
	else if (limit == "")
		printf "| %s | %s | | |\n", title, measured
	else
		printf "| %s | %s | ≤ " format "%s | %s |\n", title, measured, limit, unit,
			x <= limit ? "reached" : "**missed**"
	if (x != "" && limit != "" && x > (about["quick"] ? sane : limit))
		missed++
}

function ratio(a, b) {
	return a == "" || b == "" || b <= 0 ? "" : a / b
}

# --- the parts

function setting() {
	print "# flyrecd beside its peers\n"
	print "Written by `make bench` (`bench/run`), all in one run of " about["seconds"] " seconds. " \
		"Ratios travel to other machines, absolute figures do not.\n"
	print "What is compared takes turns for " about["rounds"] " rounds. Figures are medians, with the least and the"
	print "greatest; ratios are of two runs of the same round.\n"
	print "- machine: " about["machine"] "; Linux: " about["kernel"]
	print "- date: " about["date"] "; load average before: " about["load"]
	print "- flyrec: commit " about["commit"] "; trace-cmd " about["trace-cmd"] "; perf " about["perf"]
	print "- disk: ext4 on a loop device over " about["fs"] ", xfs and “disk” (that " about["fs"] " itself) where it says so"
	print "- load: `storm` on " about["cpus"] " CPUs, raw_syscalls:sys_enter and sys_exit"
	print "- buffers a CPU: trace-cmd and perf " about["full"] " MiB, flyrec " about["half"] " MiB\n"
	print "```\n" about["command"] "\n```\n"
	print "The session of flyrecd, with SubBufferSize= and Drain= as the columns say:\n"
	print "```ini\n" about["session"] "\n```"
}

function side_by_side(   p, others, storms, idles) {
	p = "rate." about["paced"] "."
	print "\n## Side by side"
	print "\nflyrec: sub-buffers of 4 KiB by splice; “16K”: of 16 KiB, what SubBufferSize=auto chooses where it can;"
	print "“read”: of 4 KiB by read."
	head("at " about["paced"] / 1e6 " M events/s", "unread floor flyrec flyrec,_read flyrec,_16K trace-cmd perf")
	others = p "flyrec " p "flyrec-read " p "flyrec-16k " p "trace-cmd "
	p = p "unread " p "floor " others p "perf"
	row("CPU s/GB, the recorder, from ready to finished file", "per_gb cpu", "%.3f", 1, p)
	row("… with its start", "per_gb cpu_all", "%.3f", 1, p)
	row("CPU s/GB, kernel threads (writeback, loop device)", "per_gb cpu_kthreads", "%.3f", 1, p)
	row("CPU s/GB, whole machine beyond “unread”", "per_gb whole", "%.3f", 1, p)
	row("CPU ms per million events, the recorder", "mega_events", "%.1f", 1, p)
	row("events lost", "lost", "%d", 1, p)
	head("as fast as possible", "untraced unread floor flyrec flyrec,_read flyrec,_16K trace-cmd perf")
	storms = "storm.untraced storm.unread storm.floor storm.flyrec storm.flyrec-read storm.flyrec-16k " \
		"storm.trace-cmd storm.perf"
	row("M calls/s of the traced program", "rate", "%.2f", 1e-6, storms)
	row("CPU s/GB, the recorder", "per_gb cpu", "%.3f", 1, storms)
	row("trace data, MB", "data_bytes", "%.0f", 1e-6, storms)
	row("events lost", "lost", "%d", 1, storms)
	row("bytes written to the disk per byte of trace data", "written", "%.3f", 1, storms)
	row("metadata sections, MB", "meta_bytes", "%.1f", 1e-6, storms)
	row("page cache left behind by the file, MB", "file_cached", "%.1f", 1e-6, storms)
	row("fdatasync just before the stop, ms", "sync_seconds", "%.0f", 1000, \
		"- - - storm.flyrec storm.flyrec-read storm.flyrec-16k - -")
	row("stop to finished file, ms", "finished_seconds", "%.0f", 1000, \
		"- - - storm.flyrec storm.flyrec-read storm.flyrec-16k storm.trace-cmd storm.perf")
	row("stop to end of the recorder, ms", "ended_seconds", "%.0f", 1000, \
		"- - storm.floor storm.flyrec storm.flyrec-read storm.flyrec-16k storm.trace-cmd storm.perf")
	head("idle for " about["idle"] " s", "flyrec trace-cmd perf")
	idles = "idle.flyrec idle.trace-cmd idle.perf"
	row("wake-ups a second", "switches", "%.1f", 1 / about["idle"], idles)
	row("memory of all its processes, MB", "rss", "%.1f", 1e-6, idles)
	row("CPU ms for start, by process", "cpu_start", "%.0f", 1000, idles)
	row("CPU ms from ready to end, nothing recorded", "cpu", "%.0f", 1000, idles)
	print "\n“unread” is the same load traced into a ring buffer that nobody reads; the floor moves the"
	print "sub-buffers to /dev/null by splice. perf was given fewer calls; its events are about"
	print "twice as large, so compare it by event. Memory: flyrec keeps the kernel's symbols."
}

function variants(   runs) {
	print "\n## Variants, as fast as possible"
	print "\nThe floor by one thread, and by one for each CPU, on it (“near”) or on another one (“far”). xfs on a"
	print "loop device; “disk” is the file system below the loop devices."
	runs = "storm.floor storm.floor-near storm.floor-far storm.flyrec storm.flyrec-read storm.flyrec-16k " \
		"storm.flyrec-xfs storm.flyrec-disk"
	head("", "floor floor,_near floor,_far flyrec flyrec,_read flyrec,_16K flyrec,_xfs flyrec,_disk")
	row("M calls/s of the traced program", "rate", "%.2f", 1e-6, runs)
	row("CPU s/GB, the recorder", "per_gb cpu", "%.3f", 1, runs)
	ratio_row("… of the floor's", "per_gb cpu", "storm.floor", "%.2f", runs)
	row("CPU s/GB, kernel threads", "per_gb cpu_kthreads", "%.3f", 1, runs)
	row("events lost", "lost", "%d", 1, runs)
	runs = "storm.flyrec storm.flyrec-buffered storm.flyrec-xfs storm.flyrec-disk storm.trace-cmd storm.trace-cmd-xfs"
	head("", "flyrec flyrec,_page_cache flyrec,_xfs flyrec,_disk trace-cmd trace-cmd,_xfs")
	row("M calls/s of the traced program", "rate", "%.2f", 1e-6, runs)
	row("CPU s/GB, the recorder", "per_gb cpu", "%.3f", 1, runs)
	row("bytes written per byte of trace data", "written", "%.3f", 1, runs)
	row("page cache left behind, MB", "file_cached", "%.1f", 1e-6, runs)
	row("fdatasync just before the stop, ms", "sync_seconds", "%.0f", 1000, runs)
	row("stop to finished file, ms", "finished_seconds", "%.0f", 1000, runs)
	head("events lost, by buffer a CPU", about["half"] "_MiB " about["full"] "_MiB")
	row("flyrec", "lost", "%d", 1, "storm.flyrec storm.flyrec-full")
	row("trace-cmd", "lost", "%d", 1, "storm.trace-cmd-half storm.trace-cmd")
}

function rates(   all, n, list, i, j, tools, t, run, x, line) {
	for (run in repeats)
		if (match(run, /^rate\.[0-9]+/))
			all[substr(run, 6, RLENGTH - 5)] = 1
	for (x in all)
		list[++n] = x + 0
	sort(list, n)
	split("floor flyrec flyrec-16k trace-cmd perf", tools, " ")
	print "\n## By event rate\n\nCPU s/GB of the recorder, without what it needs when nothing is recorded; in the last line as"
	print "fast as possible, which each recorder slows down by as much as it takes of the CPUs."
	print "![CPU per GB](cpu-per-gb.svg)"
	head("events/s", "floor flyrec flyrec,_16K trace-cmd perf")
	for (j = 1; j <= n + 1; j++) {
		line = j > n ? "| full |" : "| " list[j] " |"
		for (i = 1; i <= 5; i++) {
			t = tools[i]
			run = j > n ? "storm." t : "rate." list[j] "." t ".1"
			x = best(run, "without_idle " t)
			line = line " " text(x, "%.3f") " |"
			if (x != "")
				points[t] = points[t] 2 * best(run, "rate") " " x "\n"
		}
		print line
	}
	for (i = 1; i <= 5; i++)
		printf "\"%s\"\n%s\n\n", tools[i], points[tools[i]] >plot
	close(plot)
}

# WHICH: the variant of flyrec; NAME: how it is called
function goals_of(which, name,   p, f, t, s) {
	p = "rate." about["paced"] "."
	f = p which
	t = p "trace-cmd"
	s = "storm." which
	if (!(f in repeats))
		return
	goal("**" name "**: CPU per GB, of trace-cmd's", rounds(f, t, "per_gb cpu"), 0.10, "%.3f", "", 0.6)
	goal("… as fast as possible", rounds(s, "storm.trace-cmd", "per_gb cpu"), "", "%.3f")
	goal("… with the start, which fetches formats and symbols", rounds(f, t, "per_gb cpu_all"), "", "%.3f")
	goal("… with kernel threads, the loop device's included", \
		rounds(f, t, "per_gb cpu + per_gb cpu_kthreads"), "", "%.3f")
	goal("… whole machine beyond “unread”", rounds(f, t, "per_gb whole"), "", "%.3f")
	goal("CPU per GB, of the floor's", rounds(f, p "floor", "per_gb cpu"), 1.2, "%.2f", "", 8)
	goal("… as fast as possible", rounds(s, "storm.floor", "per_gb cpu"), 1.2, "%.2f", "", 8)
	goal("time of the traced program, of that with nobody reading", \
		rounds("storm.unread", s, "rate"), 1.03, "%.2f", "", 3)
	goal("events lost, the most of all runs", most_lost(f, s), 0, "%d", "", 1e12)
}

# Of all runs of two kinds
function most_lost(a, b,   most) {
	median(a, "lost")
	most = high
	median(b, "lost")
	most = high > most ? high : most
	low = high = ""
	return most
}

function goals() {
	print "\n## Goals"
	print "\n| | measured | goal | |\n|---|---:|---:|---|"
	goals_of("flyrec", "4 KiB, splice")
	goals_of("flyrec-read", "4 KiB, read")
	goals_of("flyrec-16k", "16 KiB")
	goal("bytes written per byte, ext4", best("storm.flyrec", "written"), 1.02, "%.3f", "", 1.2)
	goal("bytes written per byte, xfs", best("storm.flyrec-xfs", "written"), 1.02, "%.3f", "", 1.2)
	stop_goal("ext4", "storm.flyrec")
	stop_goal("xfs", "storm.flyrec-xfs")
}

function stop_goal(fs, run,   bytes, sync) {
	bytes = best(run, "data_bytes")
	sync = best(run, "sync_ms")
	goal("stop to finished file, " text(bytes, "%.1f", 1e-9) " GB, " fs " (100 ms and one sync)", \
		best(run, "finished_ms"), 100 + sync, "%.0f", " ms", 5000)
}

END {
	baseline = ""
	baseline = median("rate." about["paced"] ".unread", "cpu_busy")
	setting()
	goals()
	side_by_side()
	variants()
	rates()
	exit missed > 0
}
