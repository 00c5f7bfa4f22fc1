// SPDX-License-Identifier: LGPL-2.1-or-later
// The time line of flyrecctl export --format=html, and tables that sort. Works alone, in a frame with
// sandbox="allow-scripts", from a file. What analysis/timeline.h says is how the items are encoded.
// Names are other people's text: they become text nodes and nothing else.
"use strict";
(() => {

const RUN = 0, WAIT = 1, BLOCKED = 2, IRQ = 3, SOFTIRQ = 4, REQUEST = 5, LOSS = 6;
const ROW = 20, AXIS = 18; // pixels
const FULL = 255;
const TASKS = 14; // shown at first; of a search:
const FOUND = 60;
const ARROWS = 200; // drawn at most
const root = document.documentElement;
const paints = []; // draw all canvases of a host again

function element(name, properties, ...children) {
	const e = Object.assign(document.createElement(name), properties);
	e.append(...children);
	return e;
}

// What the page has of a host, up to "colours, paper"; suffix: of its ids
function report(suffix) {

const part = id => document.getElementById(id + suffix);
const facts = JSON.parse(part("facts").textContent);

// --- the items

const bytes = Uint8Array.from(atob(part("items").textContent), c => c.charCodeAt(0));
let at = 0;

function number() {
	let value = 0, unit = 1, byte;
	do {
		byte = bytes[at++];
		value += (byte & 0x7f) * unit;
		unit *= 128;
	} while (byte & 0x80);
	return value;
}

const from = new Float64Array(facts.items), to = new Float64Array(facts.items);
const kind = new Uint8Array(facts.items), busy = new Uint8Array(facts.items);
const cpu = new Uint32Array(facts.items), row = new Uint32Array(facts.items);
const count = new Float64Array(facts.items), waker = new Int32Array(facts.items);

for (let group = 0, i = 0; group < facts.groups; group++) {
	const k = number(), r = number(), n = number();
	let begin = 0;
	for (const end = i + n; i < end; i++) {
		begin += number();
		from[i] = begin;
		to[i] = begin + number();
		const flags = number();
		kind[i] = k;
		row[i] = r;
		cpu[i] = Math.floor(flags / 4);
		count[i] = flags & 1 ? number() : 1;
		busy[i] = flags & 1 ? number() : FULL;
		waker[i] = flags & 2 ? number() : -1;
	}
}

// Items in order of time; high: the largest end so far, by which those are found that reach into a
// part of it although they overlap
class Track {
	constructor(items) {
		this.items = items.sort((a, b) => from[a] - from[b]);
		this.high = new Float64Array(items.length);
		let high = 0;
		for (let i = 0; i < items.length; i++)
			this.high[i] = high = Math.max(high, to[items[i]]);
	}
	// The place of the first one that may be seen after t
	first(t) {
		let low = 0, high = this.items.length;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (this.high[middle] < t)
				low = middle + 1;
			else
				high = middle;
		}
		return low;
	}
	*within(t0, t1) {
		for (let i = this.first(t0); i < this.items.length && from[this.items[i]] <= t1; i++)
			if (to[this.items[i]] >= t0)
				yield this.items[i];
	}
}

const NONE = new Track(new Uint32Array(0));
// Maps of tracks: of each kind by row, or by CPU
function tracks(kinds, key) {
	const sizes = new Map(), map = new Map();
	for (let i = 0; i < facts.items; i++)
		if (kinds.includes(kind[i]))
			sizes.set(key[i], (sizes.get(key[i]) || 0) + 1);
	for (const [k, n] of sizes)
		map.set(k, {items: new Uint32Array(n), n: 0});
	for (let i = 0; i < facts.items; i++)
		if (kinds.includes(kind[i])) {
			const list = map.get(key[i]);
			list.items[list.n++] = i;
		}
	for (const [k, list] of map)
		map.set(k, new Track(list.items));
	return map;
}

const runsOfCpu = tracks([RUN], cpu), irqsOfCpu = tracks([IRQ], cpu), softirqsOfCpu = tracks([SOFTIRQ], cpu);
const lossesOfCpu = tracks([LOSS], cpu), requestsOf = tracks([REQUEST], row);
const ofTask = tracks([RUN, WAIT, BLOCKED], row);
const everyWait = tracks([WAIT], kind).get(WAIT) || NONE;

// --- tasks

const tasks = [null]; // by row
const byPid = new Map();
for (const [pid, name, unit, before] of facts.tasks) {
	byPid.set(pid, tasks.length);
	tasks.push({pid, name, unit: unit || "", before: before || "", time: 0,
		label: (before ? before + " \u2192 " : "") + name + " " + pid});
}
for (let i = 0; i < facts.items; i++)
	if (kind[i] <= BLOCKED && row[i] > 0)
		tasks[row[i]].time += (to[i] - from[i]) * busy[i] / FULL;
const byTime = tasks.map((_, i) => i).slice(1).sort((a, b) => tasks[b].time - tasks[a].time);

function taskName(r) {
	return r > 0 ? tasks[r].label + (tasks[r].unit ? " (" + tasks[r].unit + ")" : "") : "several tasks";
}

function wakerName(w) {
	return w < 0 ? "" : w < 3 ? ["the idle task", "an interrupt", "a softirq"][w] : tasks[w - 2].label;
}

// --- words

function nsec(n) {
	if (!facts.usecs)
		return Math.round(n) + " ticks";
	let unit = 0;
	while (Math.abs(n) >= 1000 && unit < 3) {
		n /= 1000;
		unit++;
	}
	return (unit === 0 ? Math.round(n) : n.toPrecision(4)) + ["ns", "us", "ms", "s"][unit];
}

// Of an axis: with as many digits as tell it from the next one
function tick(t, step, most) {
	if (!facts.usecs)
		return String(Math.round(t));
	const unit = Math.min(Math.floor(Math.log10(Math.max(most, 1)) / 3), 3), size = Math.pow(1000, unit);
	return (t / size).toFixed(Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9))) + ["ns", "us", "ms", "s"][unit];
}

const pad = (n, digits) => String(n).padStart(digits, "0");

function clock(t) {
	if (facts.day === null) {
		const ts = BigInt(facts.from) + BigInt(Math.round(t));
		return facts.usecs ? ts / 1000000000n + "." + pad(ts % 1000000000n / 1000n, 6) : String(ts);
	}
	const usec = Math.floor((facts.day + t) / 1000), sec = Math.floor(usec / 1e6) % 86400;
	return pad(Math.floor(sec / 3600), 2) + ":" + pad(Math.floor(sec / 60) % 60, 2) + ":" +
		pad(sec % 60, 2) + "." + pad(usec % 1e6, 6);
}

// --- colours

let colours = new Map();
const colour = name => {
	if (!colours.has(name))
		colours.set(name, getComputedStyle(root).getPropertyValue("--" + name).trim());
	return colours.get(name);
};

function taskColour(r) {
	if (r === 0)
		return colour("other");
	const name = tasks[r].name;
	if (!colours.has("task " + name)) {
		let hash = 0;
		for (let i = 0; i < name.length; i++)
			hash = (hash * 31 + name.charCodeAt(i)) % 360;
		colours.set("task " + name,
			"hsl(" + hash * 137 % 360 + " " + colour("task-s") + " " + colour("task-l") + ")");
	}
	return colours.get("task " + name);
}

function itemColour(i) {
	return kind[i] === RUN ? taskColour(row[i]) :
		colour(["", "wait", "blocked", "irq", "softirq", "request", "lost"][kind[i]]);
}

// --- rows: what is drawn beside a label, each part of it in a band of the row

const rowOfCpu = n => ({cpu: n, label: "CPU " + n, parts: [
	[lossesOfCpu.get(n), 1, ROW - 2], [runsOfCpu.get(n), 7, ROW - 8],
	[irqsOfCpu.get(n), 1, 3], [softirqsOfCpu.get(n), 4, 3]]});
const rowOfTask = n => ({task: n, label: tasks[n].label, title: tasks[n].unit, parts: [[ofTask.get(n), 1, ROW - 2]]});
const rowOfRequests = n => ({label: facts.labels[n], parts: [[requestsOf.get(n), 4, ROW - 8]]});

const cpuRows = [], requestRows = [...requestsOf.keys()].sort((a, b) => a - b).map(rowOfRequests);
for (let n = 0; n < Math.max(facts.cpus, ...[...runsOfCpu.keys(), ...lossesOfCpu.keys()].map(k => k + 1)); n++)
	if (n < facts.cpus || runsOfCpu.has(n) || lossesOfCpu.has(n))
		cpuRows.push(rowOfCpu(n));

// --- a view: rows from t0 to t1

class View {
	constructor(place) {
		this.labels = element("div", {className: "labels"});
		this.canvas = element("canvas", {tabIndex: 0});
		this.canvas.setAttribute("role", "img");
		this.place = element("div", {className: "view"}, this.labels, this.canvas);
		place.append(this.place);
		this.rows = [];
		this.t0 = 0;
		this.t1 = Math.max(facts.length, 1);
		this.selected = -1;
	}

	show(rows) {
		this.rows = rows;
		this.labels.replaceChildren(...rows.map(r =>
			element("div", {textContent: r.label, title: r.label + (r.title ? " " + r.title : "")})));
		this.canvas.style.height = AXIS + rows.length * ROW + "px";
	}

	// Within the recording, and no closer than can be told apart
	zoom(t0, t1) {
		const least = Math.min(facts.length || 1, 200);
		const length = Math.min(Math.max(t1 - t0, least), Math.max(facts.length, 1));
		const middle = (t0 + t1) / 2;
		this.t0 = Math.max(0, Math.min(middle - length / 2, facts.length - length));
		this.t1 = this.t0 + length;
	}

	x(t) {
		return (t - this.t0) * this.scale;
	}

	// Items of a band: one by one, or what is less than a pixel as a share of it
	band(track, y, height) {
		const c = this.context, {t0, scale, width} = this;
		const share = this.share, most = this.most, whose = this.whose;
		let used0 = width, used1 = 0;
		for (let k = track.first(t0); k < track.items.length; k++) {
			const i = track.items[k];
			if (from[i] > this.t1)
				break;
			if (to[i] < t0)
				continue;
			const x0 = (from[i] - t0) * scale, x1 = (to[i] - t0) * scale;
			if (x1 - x0 >= 1) {
				const low = kind[i] === WAIT || kind[i] === BLOCKED ? height / 3 : 0;
				c.globalAlpha = 0.3 + 0.7 * busy[i] / FULL;
				c.fillStyle = itemColour(i);
				c.fillRect(Math.max(x0, -1), y + low, Math.min(x1, width + 1) - Math.max(x0, -1), height - 2 * low);
				if (x1 - x0 > 50 && height > 10 && kind[i] === RUN)
					this.name(i, Math.max(x0, 0), Math.min(x1, width), y + height - 3);
				continue;
			}
			const x = Math.min(Math.max(Math.floor(x0), 0), width - 1);
			const weight = Math.max((x1 - x0) * busy[i] / FULL, 0.01);
			share[x] += weight;
			if (weight > most[x]) {
				most[x] = weight;
				whose[x] = i;
			}
			used0 = Math.min(used0, x);
			used1 = Math.max(used1, x);
		}
		for (let x = used0; x <= used1; x++) {
			if (share[x] > 0) {
				const low = kind[whose[x]] === WAIT || kind[whose[x]] === BLOCKED ? height / 3 : 0;
				c.globalAlpha = 0.35 + 0.65 * Math.min(share[x], 1);
				c.fillStyle = itemColour(whose[x]);
				c.fillRect(x, y + low, 1, height - 2 * low);
			}
			share[x] = most[x] = 0;
		}
		c.globalAlpha = 1;
	}

	name(i, x0, x1, y) {
		const c = this.context, text = row[i] > 0 ? tasks[row[i]].name : "several";
		c.save();
		c.beginPath();
		c.rect(x0, y - 14, x1 - x0 - 2, 18);
		c.clip();
		c.globalAlpha = 1;
		c.fillStyle = colour("on");
		c.fillText(text, x0 + 3, y);
		c.restore();
	}

	axis() {
		const c = this.context, length = this.t1 - this.t0;
		let step = Math.pow(10, Math.floor(Math.log10(length * 90 / this.width)));
		step *= [1, 2, 5, 10].find(n => n * step * this.scale >= 80) || 10;
		c.fillStyle = colour("soft");
		for (let t = Math.ceil(this.t0 / step) * step; t <= this.t1; t += step) {
			const x = this.x(t);
			c.fillRect(Math.round(x), AXIS - 4, 1, 4);
			c.fillText(tick(t, step, this.t1), x + 3, AXIS - 5);
		}
	}

	marks() {
		const c = this.context, height = AXIS + this.rows.length * ROW;
		facts.findings.forEach((f, i) => {
			const x0 = this.x(f.from), x1 = Math.max(this.x(f.to), x0 + 1);
			if (x1 < 0 || x0 > this.width)
				return;
			c.fillStyle = colour("mark");
			c.fillRect(Math.max(x0, 0), AXIS, Math.min(x1, this.width) - Math.max(x0, 0), height);
			c.fillStyle = colour("soft");
			c.fillText(i + 1, Math.max(x0, 0) + 1, AXIS + 9);
		});
		if (facts.cause !== null) {
			c.fillStyle = colour("blocked");
			c.fillRect(Math.round(this.x(facts.cause)), 0, 1, height);
		}
	}

	// Where a row is: its middle
	y(test) {
		const n = this.rows.findIndex(test);
		return n < 0 ? -1 : AXIS + n * ROW + ROW / 2;
	}

	// On which CPU a task ran then
	cpuAt(r, t) {
		for (const i of (ofTask.get(r) || NONE).within(t, t))
			if (kind[i] === RUN)
				return cpu[i];
		return -1;
	}

	// From who woke, to the task's row; or from CPU to CPU where that is not shown
	arrow(i) {
		const w = waker[i] - 2;
		const mine = this.y(r => r.task === row[i]);
		let source = w > 0 ? this.y(r => r.task === w) : -1;
		if (source < 0 && w > 0) {
			const n = this.cpuAt(w, from[i]);
			source = this.y(r => r.cpu === n);
		}
		const target = mine >= 0 ? mine : this.y(r => r.cpu === cpu[i]);
		if (target < 0 || source < 0 || source === target)
			return;
		const c = this.context, x0 = this.x(from[i]), x1 = mine >= 0 ? x0 : this.x(to[i]);
		const down = target > source ? 1 : -1;
		c.beginPath();
		c.moveTo(x0, source);
		c.lineTo(x1, target);
		c.moveTo(x1 - 3, target - 5 * down);
		c.lineTo(x1, target);
		c.lineTo(x1 + 3, target - 5 * down);
		c.stroke();
	}

	arrows() {
		const c = this.context, shown = new Set(this.rows.map(r => r.task).filter(t => t)), list = [];
		for (const i of everyWait.within(this.t0, this.t1)) {
			if (waker[i] >= 3 && (shown.has(row[i]) || shown.size === 0))
				list.push(i);
			if (list.length > ARROWS)
				break;
		}
		c.lineWidth = 1;
		c.strokeStyle = colour("text");
		if (list.length <= ARROWS)
			list.forEach(i => this.arrow(i));
		this.canvas.dataset.arrows = list.length <= ARROWS ? list.length : 0;
	}

	outline() {
		const i = this.selected, c = this.context;
		if (i < 0)
			return;
		c.lineWidth = 2;
		c.strokeStyle = colour("text");
		this.rows.forEach((r, n) => r.parts.forEach(([track, y, height]) => {
			const mine = r.task ? r.task === row[i] && kind[i] <= BLOCKED : r.cpu === cpu[i] &&
				[LOSS, RUN, IRQ, SOFTIRQ].indexOf(kind[i]) === r.parts.findIndex(p => p[1] === y);
			if (mine)
				c.strokeRect(this.x(from[i]), AXIS + n * ROW + y, Math.max(this.x(to[i]) - this.x(from[i]), 2), height);
		}));
		if (waker[i] >= 3)
			this.arrow(i);
	}

	draw() {
		const began = performance.now(), canvas = this.canvas, ratio = window.devicePixelRatio || 1;
		const width = canvas.clientWidth, height = AXIS + this.rows.length * ROW;
		if (width < 1)
			return;
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
		const c = this.context = canvas.getContext("2d");
		c.scale(ratio, ratio);
		c.font = "11px system-ui, sans-serif";
		this.width = width;
		this.scale = width / (this.t1 - this.t0);
		this.share = new Float64Array(width);
		this.most = new Float64Array(width);
		this.whose = new Uint32Array(width);
		c.fillStyle = colour("back");
		c.fillRect(0, 0, width, height);
		this.marks();
		this.axis();
		this.rows.forEach((r, n) => {
			c.fillStyle = colour("line");
			c.fillRect(0, AXIS + (n + 1) * ROW - 0.5, width, 0.5);
			for (const [track, y, h] of r.parts)
				if (track)
					this.band(track, AXIS + n * ROW + y, h);
		});
		this.arrows();
		this.outline();
		canvas.dataset.from = this.t0;
		canvas.dataset.to = this.t1;
		canvas.dataset.ms = performance.now() - began;
		canvas.setAttribute("aria-label", "Time line from " + clock(this.t0) + " to " + clock(this.t1));
	}

	// The item there, the shortest if there are several
	hit(x, y) {
		const r = this.rows[Math.floor((y - AXIS) / ROW)], inside = (y - AXIS) % ROW;
		const t = this.t0 + x / this.scale, slack = 3 / this.scale;
		let best = -1, distance = Infinity;
		for (const [track, top, height] of r && y >= AXIS ? r.parts : [])
			if (track && inside >= top - 1 && inside <= top + height + 1)
				for (const i of track.within(t - slack, t + slack)) {
					const d = Math.max(from[i] - t, t - to[i], 0) * 1e3 + (to[i] - from[i]);
					if (d < distance) {
						distance = d;
						best = i;
					}
				}
		return best;
	}
}

// --- what an item is, in words

function whoRan(n, t0, t1) {
	const sums = new Map();
	for (const i of (runsOfCpu.get(n) || NONE).within(t0, t1)) {
		const part = (Math.min(to[i], t1) - Math.max(from[i], t0)) * busy[i] / FULL;
		if (part > 0)
			sums.set(row[i], (sums.get(row[i]) || 0) + part);
	}
	return [...sums].sort((a, b) => b[1] - a[1]);
}

function describe(i) {
	const k = kind[i], length = nsec(to[i] - from[i]), when = clock(from[i]);
	const several = k !== LOSS && count[i] > 1 ? ", " + count[i] + " times, " +
		Math.round(busy[i] * 100 / FULL) + "% of that time" : "";
	if (k === RUN)
		return taskName(row[i]) + " ran on CPU " + cpu[i] + " for " + length + several + "\n" + when;
	if (k === WAIT || k === BLOCKED) {
		let text = taskName(row[i]) + (k === WAIT ? " waited for a CPU" : " was blocked (D)") + " for " + length + several;
		if (waker[i] >= 0)
			text += ", woken by " + wakerName(waker[i]);
		text += "\n" + when;
		if (k === WAIT) {
			const ran = whoRan(cpu[i], from[i], to[i]).slice(0, 6).map(([r, n]) => taskName(r) + " " + nsec(n));
			text += "\nCPU " + cpu[i] + " meanwhile: " + (ran.join(", ") || "nobody known");
		}
		return text;
	}
	if (k === LOSS)
		return (count[i] || "An unknown number of") + " events of CPU " + cpu[i] + " were lost within " + length + "\n" + when;
	return facts.labels[row[i]] + (k === REQUEST ? " took " : " on CPU " + cpu[i] + " took ") + length + several + "\n" + when;
}

// --- the page

const place = part("timeline");
const range = element("output", {className: "at", id: "range" + suffix});
const detail = element("output", {className: "at detail", id: "detail" + suffix});
const search = element("input", {type: "search", placeholder: "Task: name, pid or unit", id: "search" + suffix});
search.setAttribute("aria-label", "Search for a task");
const overview = element("canvas", {className: "overview"});
overview.setAttribute("role", "img");
overview.setAttribute("aria-label", "Events over time");
const button = (text, title, onclick) => element("button", {type: "button", textContent: text, title, onclick});
const findings = part("findings").querySelectorAll("ol > li");
let chosen = -1; // finding

place.append(
	element("div", {className: "bar"},
		button("+", "Zoom in (+)", () => zoomBy(0.5)), button("\u2212", "Zoom out (-)", () => zoomBy(2)),
		button("All", "All of it (0)", () => look(0, facts.length)),
		button("\u2190", "Finding before (p)", () => choose(chosen - 1)),
		button("\u2192", "Next finding (n)", () => choose(chosen + 1)), search,
		button("Light/dark", "Other colours", toggleTheme), range),
	overview);
const view = new View(place);
view.canvas.id = "canvas" + suffix;
place.append(detail,
	element("p", {className: "legend more"}, ...[["wait", "waits for a CPU"], ["blocked", "blocked (D)"],
		["irq", "interrupt"], ["softirq", "softirq"], ["lost", "events lost"], ["other", "several tasks"]].map(([c, text]) =>
		element("span", {}, element("i", {className: c}), text))),
	element("p", {className: "more", textContent: "Click for what it is; drag, arrow keys: move; Ctrl and wheel, + and -, " +
		"double click: zoom; 0: all; n, p: findings; /: search."}));

function rowsShown() {
	const wanted = search.value.trim().toLowerCase(), list = [];
	const put = r => r > 0 && !list.includes(r) && list.push(r);
	if (wanted !== "") {
		for (const r of byTime)
			if (list.length < FOUND && (tasks[r].label.toLowerCase().includes(wanted) ||
				tasks[r].unit.toLowerCase().includes(wanted)))
				put(r);
	} else {
		const f = facts.findings[chosen];
		if (f) {
			f.pids.forEach(pid => put(byPid.get(pid)));
			whoRan(f.cpu, f.from, f.to).slice(0, 8).forEach(([r]) => put(r));
		}
		byTime.slice(0, TASKS).forEach(r => list.length < TASKS && put(r));
	}
	return cpuRows.concat(requestRows, list.map(rowOfTask));
}

let asked = false;
function redraw() {
	if (!asked)
		requestAnimationFrame(() => {
			asked = false;
			paint();
		});
	asked = true;
}

function paint() {
	view.draw();
	drawOverview();
	range.textContent = clock(view.t0) + " \u2013 " + clock(view.t1) + ", " + nsec(view.t1 - view.t0);
}

function look(t0, t1) {
	view.zoom(t0, t1);
	redraw();
}

// About a time: the middle, if none is given
function zoomBy(factor, t = (view.t0 + view.t1) / 2) {
	const length = (view.t1 - view.t0) * factor;
	const share = (t - view.t0) / (view.t1 - view.t0);
	look(t - length * share, t + length * (1 - share));
}

function move(share) {
	const by = (view.t1 - view.t0) * share;
	look(view.t0 + by, view.t1 + by);
}

function select(i) {
	view.selected = i;
	detail.textContent = i < 0 ? "" : describe(i);
	redraw();
}

function windowOf(f) {
	const more = Math.max((f.to - f.from) / 2, facts.usecs ? 1e5 : 10);
	return [f.from - more, f.to + more];
}

function choose(i) {
	if (i < 0 || i >= facts.findings.length)
		return;
	chosen = i;
	search.value = "";
	view.show(rowsShown());
	select(-1);
	look(...windowOf(facts.findings[i]));
	detail.textContent = findings[i].querySelector("p").textContent;
}

function drawOverview() {
	const ratio = window.devicePixelRatio || 1, width = overview.clientWidth, height = 40, c = overview.getContext("2d");
	overview.width = width * ratio;
	overview.height = height * ratio;
	c.scale(ratio, ratio);
	c.fillStyle = colour("panel");
	c.fillRect(0, 0, width, height);
	const most = Math.max(1, ...facts.rate), bar = width / facts.rate.length;
	c.fillStyle = colour("other");
	facts.rate.forEach((n, i) => n && c.fillRect(i * bar, height - Math.max(n / most * (height - 6), 1), bar, height));
	const scale = width / Math.max(facts.length, 1);
	c.fillStyle = colour("wait");
	facts.findings.forEach(f => c.fillRect(f.from * scale, 0, Math.max((f.to - f.from) * scale, 2), 4));
	c.fillStyle = colour("lost");
	for (const track of lossesOfCpu.values())
		for (const i of track.items)
			c.fillRect(from[i] * scale, 4, Math.max((to[i] - from[i]) * scale, 2), 3);
	c.strokeStyle = colour("link");
	c.lineWidth = 2;
	c.strokeRect(view.t0 * scale + 1, 1, Math.max((view.t1 - view.t0) * scale - 2, 2), height - 2);
}

const canvas = view.canvas;
const timeAt = e => view.t0 + e.offsetX / view.scale;

canvas.addEventListener("wheel", e => {
	// the page scrolls by a wheel, too
	if (!e.ctrlKey && !e.metaKey && Math.abs(e.deltaX) <= Math.abs(e.deltaY))
		return;
	e.preventDefault();
	if (e.ctrlKey || e.metaKey)
		zoomBy(Math.pow(1.0015, e.deltaY), timeAt(e));
	else
		move(e.deltaX / view.width);
}, {passive: false});

let drag = null;
canvas.addEventListener("pointerdown", e => {
	drag = {x: e.clientX, t0: view.t0, t1: view.t1, moved: false};
	canvas.setPointerCapture(e.pointerId);
});
canvas.addEventListener("pointermove", e => {
	if (!drag)
		return;
	drag.moved = drag.moved || Math.abs(e.clientX - drag.x) > 3;
	const by = (drag.x - e.clientX) / view.scale;
	if (drag.moved)
		look(drag.t0 + by, drag.t1 + by);
});
canvas.addEventListener("pointerup", e => {
	if (drag && !drag.moved)
		select(view.hit(e.offsetX, e.offsetY));
	drag = null;
});
canvas.addEventListener("pointercancel", () => { drag = null; });
canvas.addEventListener("dblclick", e => zoomBy(0.25, timeAt(e)));
overview.addEventListener("click", e => {
	const t = e.offsetX / overview.clientWidth * facts.length, length = view.t1 - view.t0;
	look(t - length / 2, t + length / 2);
});

const keys = {
	ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2),
	"+": () => zoomBy(0.5), "=": () => zoomBy(0.5), "-": () => zoomBy(2),
	"0": () => look(0, facts.length), Home: () => look(0, facts.length),
	n: () => choose(chosen + 1), p: () => choose(chosen - 1), Escape: () => select(-1),
	"/": () => search.focus(),
};
canvas.addEventListener("keydown", e => {
	const key = keys[e.key];
	if (!key || e.ctrlKey || e.metaKey || e.altKey)
		return;
	e.preventDefault();
	key();
});

search.addEventListener("input", () => {
	view.show(rowsShown());
	redraw();
});

// --- each finding has its window drawn beside it

const strips = [];
findings.forEach((li, i) => {
	const f = facts.findings[i], strip = new View(li);
	const list = f.pids.map(pid => byPid.get(pid)).filter((r, n, all) => r && all.indexOf(r) === n);
	strip.show([rowOfCpu(f.cpu)].concat(list.slice(0, 5).map(rowOfTask)));
	strip.zoom(...windowOf(f));
	strip.canvas.tabIndex = -1;
	strip.canvas.addEventListener("click", () => choose(i));
	strips.push(strip);
	li.insertBefore(button("In the time line", "Finding " + (i + 1), () => {
		choose(i);
		place.scrollIntoView();
		canvas.focus();
	}), strip.place);
});

function paintAll() {
	colours = new Map();
	strips.forEach(s => s.draw());
	paint();
}

view.show(rowsShown());
paints.push(paintAll);

}

// --- colours, paper

const paintPage = () => paints.forEach(paint => paint());

function toggleTheme() {
	const dark = root.dataset.theme ? root.dataset.theme === "dark" :
		matchMedia("(prefers-color-scheme: dark)").matches;
	root.dataset.theme = dark ? "light" : "dark";
	paintPage();
}

let themeBefore;
addEventListener("beforeprint", () => {
	themeBefore = root.dataset.theme;
	root.dataset.theme = "light";
	paintPage();
});
addEventListener("afterprint", () => {
	if (themeBefore)
		root.dataset.theme = themeBefore;
	else
		delete root.dataset.theme;
	paintPage();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paintPage);
addEventListener("resize", paintPage);

// --- tables that sort

const units = {ns: 1, us: 1e3, ms: 1e6, s: 1e9, K: 1024, M: 1048576, G: 1073741824, T: 1099511627776, "%": 1, "": 1};
function value(text) {
	const m = /^([0-9.]+)(ns|us|ms|s|[KMGT%]?)$/.exec(text);
	return m ? Number(m[1]) * units[m[2]] : -1;
}

document.querySelectorAll("table").forEach(table => {
	const heads = [...table.querySelectorAll("th")], body = table.tBodies[0];
	heads.forEach((th, column) => {
		const numbers = th.classList.contains("n");
		const sort = () => {
			const up = numbers ? th.getAttribute("aria-sort") === "descending" : th.getAttribute("aria-sort") !== "ascending";
			const text = tr => tr.cells[column].textContent;
			const rows = [...body.rows].sort((a, b) => {
				const d = numbers ? value(text(a)) - value(text(b)) : 0;
				return (d || (text(a) < text(b) ? -1 : text(a) > text(b) ? 1 : 0)) * (up ? 1 : -1);
			});
			heads.forEach(h => h.removeAttribute("aria-sort"));
			th.setAttribute("aria-sort", up ? "ascending" : "descending");
			body.append(...rows);
		};
		th.replaceChildren(element("button", {type: "button", textContent: th.textContent, onclick: sort}));
	});
});

document.querySelectorAll(".host").forEach((_, i) => report(i > 0 ? "-" + (i + 1) : ""));
paintPage();
document.body.dataset.ready = "yes";

})();
