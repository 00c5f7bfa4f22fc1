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
	return run in repeats ? median(run, what) : figure(run, what)
}

# One figure of several runs; "-" has none
function row(title, what, format, scale, list,   n, names, i) {
	n = split(list, names, " ")
	printf "| %s |", title
	for (i = 1; i <= n; i++)
		printf " %s |", text(best(names[i], what), format, scale)
	print ""
}

# No LIMIT: only told
function goal(title, x, limit, format, unit, sane) {
	if (x != "" && limit == "") {
		printf "| %s | " format "%s | | |\n", title, x, unit
		return
	}
	if (x == "") {
		printf "| %s | – | ≤ " format "%s | not measured |\n", title, limit, unit
		return
	}
	printf "| %s | " format "%s | ≤ " format "%s | %s |\n", title, x, unit, limit, unit,
		x <= limit ? "reached" : "**missed**"
	if (x > (about["quick"] ? sane : limit))
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
	print "- machine: " about["machine"] "; Linux: " about["kernel"]
	print "- date: " about["date"] "; load average before: " about["load"]
	print "- flyrec: commit " about["commit"] "; trace-cmd " about["trace-cmd"] "; perf " about["perf"]
	print "- disk: ext4 (xfs where it says so) on a loop device over " about["fs"]
	print "- load: `storm` on " about["cpus"] " CPUs, raw_syscalls:sys_enter and sys_exit"
	print "- buffers a CPU: trace-cmd and perf " about["full"] " MiB, flyrec " about["half"] " MiB\n"
	print "```\n" about["command"] "\n```\n"
	print "The session of flyrecd:\n"
	print "```ini\n" about["session"] "\n```"
}

function side_by_side(   p, storms, idles) {
	p = "rate." about["paced"] "."
	print "\n## Side by side"
	head("at " about["paced"] / 1e6 " M events/s, median of " repeats[p "flyrec"], \
		"unread floor flyrec trace-cmd perf")
	p = p "unread " p "floor " p "flyrec " p "trace-cmd " p "perf"
	row("CPU s/GB, the recorder, from ready to finished file", "per_gb cpu", "%.3f", 1, p)
	row("… with its start", "per_gb cpu_all", "%.3f", 1, p)
	row("CPU s/GB, kernel threads (writeback, loop device)", "per_gb cpu_kthreads", "%.3f", 1, p)
	row("CPU s/GB, whole machine beyond “unread”", "per_gb whole", "%.3f", 1, p)
	row("CPU ms per million events, the recorder", "mega_events", "%.1f", 1, p)
	head("as fast as possible, median of " repeats["storm.flyrec"], "untraced unread floor flyrec trace-cmd perf")
	storms = "storm.untraced storm.unread storm.floor storm.flyrec storm.trace-cmd storm.perf"
	row("M calls/s of the traced program", "rate", "%.2f", 1e-6, storms)
	row("CPU s/GB, the recorder", "per_gb cpu", "%.3f", 1, storms)
	row("trace data, MB", "data_bytes", "%.0f", 1e-6, storms)
	row("events lost", "lost", "%d", 1, storms)
	row("bytes written to the disk per byte of trace data", "written", "%.3f", 1, storms)
	row("metadata sections, MB", "meta_bytes", "%.1f", 1e-6, storms)
	row("page cache left behind by the file, MB", "file_cached", "%.1f", 1e-6, storms)
	row("fdatasync just before the stop, ms", "sync_seconds", "%.0f", 1000, "- - - storm.flyrec - -")
	row("stop to finished file, ms", "finished_seconds", "%.0f", 1000, \
		"- - - storm.flyrec storm.trace-cmd storm.perf")
	row("stop to end of the recorder, ms", "ended_seconds", "%.0f", 1000, \
		"- - storm.floor storm.flyrec storm.trace-cmd storm.perf")
	head("idle for " about["idle"] " s", "flyrec trace-cmd perf")
	idles = "idle.flyrec idle.trace-cmd idle.perf"
	row("wake-ups a second", "switches", "%.1f", 1 / about["idle"], idles)
	row("memory of all its processes, MB", "rss", "%.1f", 1e-6, idles)
	row("CPU ms for start, by process", "cpu_start", "%.0f", 1000, idles)
	row("CPU ms from ready to end, nothing recorded", "cpu", "%.0f", 1000, idles)
	print "\n“unread” is the same load traced into a ring buffer that nobody reads; the floor moves the"
	print "sub-buffers to /dev/null by splice. perf was given a quarter of the calls; its events are about"
	print "twice as large, so compare it by event. Memory: flyrec keeps the kernel's symbols."
}

function variants(   runs, names) {
	print "\n## Variants, as fast as possible"
	names = "flyrec flyrec,_page_cache flyrec,_16K_sub-buffers flyrec,_xfs trace-cmd trace-cmd,_xfs"
	runs = "storm.flyrec storm.flyrec-buffered storm.flyrec-16k storm.flyrec-xfs storm.trace-cmd " \
		"storm.trace-cmd-xfs"
	head("", names)
	row("M calls/s of the traced program", "rate", "%.2f", 1e-6, runs)
	row("CPU s/GB, the recorder", "per_gb cpu", "%.3f", 1, runs)
	row("CPU s/GB, kernel threads", "per_gb cpu_kthreads", "%.3f", 1, runs)
	row("events lost", "lost", "%d", 1, runs)
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
	split("floor flyrec trace-cmd perf", tools, " ")
	print "\n## By event rate\n\nCPU s/GB of the recorder, without what it needs when nothing is recorded; in the last line as"
	print "fast as possible, which each recorder slows down by as much as it takes of the CPUs."
	print "![CPU per GB](cpu-per-gb.svg)"
	head("events/s", "floor flyrec trace-cmd perf")
	for (j = 1; j <= n + 1; j++) {
		line = j > n ? "| full |" : "| " list[j] " |"
		for (i = 1; i <= 4; i++) {
			t = tools[i]
			run = j > n ? "storm." t : "rate." list[j] "." t ".1"
			x = best(run, "without_idle " t)
			line = line " " text(x, "%.3f") " |"
			if (x != "")
				points[t] = points[t] 2 * best(run, "rate") " " x "\n"
		}
		print line
	}
	for (i = 1; i <= 4; i++)
		printf "\"%s\"\n%s\n\n", tools[i], points[tools[i]] >plot
	close(plot)
}

function goals(   p, f, t) {
	p = "rate." about["paced"] "."
	f = p "flyrec"
	t = p "trace-cmd"
	print "\n## Goals"
	print "\n| | measured | goal | |\n|---|---:|---:|---|"
	goal("CPU per GB, of trace-cmd's (aim 0.10)", \
		ratio(best(f, "per_gb cpu"), best(t, "per_gb cpu")), 0.20, "%.3f", "", 0.6)
	goal("… as fast as possible", \
		ratio(best("storm.flyrec", "per_gb cpu"), best("storm.trace-cmd", "per_gb cpu")), 0.20, "%.3f", "", 0.6)
	goal("… with the start, which fetches formats and symbols", \
		ratio(best(f, "per_gb cpu_all"), best(t, "per_gb cpu_all")), "", "%.3f")
	goal("… with kernel threads, the loop device's included", \
		ratio(best(f, "per_gb cpu") + best(f, "per_gb cpu_kthreads"), \
		best(t, "per_gb cpu") + best(t, "per_gb cpu_kthreads")), "", "%.3f")
	goal("… whole machine beyond “unread”", \
		ratio(best(f, "per_gb whole"), best(t, "per_gb whole")), "", "%.3f")
	goal("CPU per GB, of the floor's", \
		ratio(best(f, "per_gb cpu"), best(p "floor", "per_gb cpu")), 1.4, "%.2f", "", 8)
	goal("… as fast as possible", \
		ratio(best("storm.flyrec", "per_gb cpu"), best("storm.floor", "per_gb cpu")), 1.4, "%.2f", "", 8)
	goal("bytes written per byte, ext4", best("storm.flyrec", "written"), 1.02, "%.3f", "", 1.2)
	goal("bytes written per byte, xfs", best("storm.flyrec-xfs", "written"), 1.02, "%.3f", "", 1.2)
	goal("events lost with " about["half"] " MiB, where trace-cmd with " about["full"] " MiB lost " \
		text(best("storm.trace-cmd", "lost"), "%d"), best("storm.flyrec", "lost"), \
		best("storm.trace-cmd", "lost") + 0, "%d", "", 1e12)
	stop_goal("ext4", "storm.flyrec")
	stop_goal("xfs", "storm.flyrec-xfs")
}

function stop_goal(fs, run) {
	goal("stop to finished file, " text(best(run, "data_bytes"), "%.1f", 1e-9) " GB, " fs \
		" (100 ms and one sync)", best(run, "finished_ms"), 100 + best(run, "sync_ms"), \
		"%.0f", " ms", 5000)
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
