// SPDX-License-Identifier: LGPL-2.1-or-later
// The Cockpit page: sessions and snapshots by D-Bus, with the rights of whoever has logged in. No framework, no
// build step.
"use strict";

const NAME = "org.flyrec.Recorder1";
const ROOT = "/org/flyrec/Recorder1";
const MANAGER = NAME + ".Manager";
const SESSION = NAME + ".Session";
const PROPERTIES = "org.freedesktop.DBus.Properties";
const OBJECTS = "org.freedesktop.DBus.ObjectManager";
const EVER = Number.MAX_SAFE_INTEGER; // UINT64_MAX does not go through JSON
const REFRESH = 2000; // milliseconds, as everything below. Of rates and sizes no signal tells, of all else one does
const SOON = 100; // after a signal that came during a refresh
const FILES_REFRESH = 30000; // pinned files are not announced, either
const ANSWER = 10000; // of the bus
const SNAPSHOTS = 50; // shown

let client; // made anew when the rights of the login change, or the bus has gone
let timer;
let busy, again; // the client that is being asked; whether to ask it once more
let files = [], filesKey, filesAt, filesWanted;
const before = new Map(); // counters of each session the last time
const costs = new Map(); // of each session, as measured
const pending = new Set(); // buttons whose calls have not been answered
const byId = id => document.getElementById(id);
const figure = number => number.toLocaleString(undefined, {maximumSignificantDigits: 3});

function element(tag, properties, ...children) {
	const e = Object.assign(document.createElement(tag), properties);
	e.append(...children);
	return e;
}

// Stays until the next click has succeeded; what a refresh had to say, until the next one has
function problem(error, ofRefresh = false) {
	const p = byId("problem");
	p.hidden = !error;
	p.dataset.of = ofRefresh ? "refresh" : "";
	if (!error)
		return;
	// the newer bridge says in the last of many lines what went wrong in it
	const text = (typeof error === "string" ? error : error.message || cockpit.message(error)).trim().split("\n").pop();
	const refused = error.name === "org.freedesktop.DBus.Error.AccessDenied" || error.problem === "access-denied";
	const said = refused ? text + ". With administrative access turned on you are root." : text;
	if (p.textContent !== said) // screen readers read it out
		p.textContent = said;
}

// Cockpit's bridge may never answer if it has lost the bus
const limit = promise => Promise.race([promise, new Promise((_, no) =>
	setTimeout(() => no(new Error("The system bus does not answer")), ANSWER))]);

const plain = properties => Object.fromEntries(Object.entries(properties).map(([k, variant]) => [k, variant.v]));

function button(text, key, onclick, disabled = false) {
	const b = element("button", {type: "button", textContent: text, disabled: disabled || pending.has(key), onclick});
	b.dataset.key = key;
	return b;
}

function enable(key, on) {
	document.querySelectorAll("button").forEach(b => {
		if (b.dataset.key === key)
			b.disabled = !on;
	});
}

// Until it is done, its button cannot be pressed again
async function act(key, work) {
	pending.add(key);
	enable(key, false);
	try {
		await work();
		problem(null);
	} catch (e) {
		problem(e);
	}
	pending.delete(key);
	enable(key, true);
	refresh();
}

function callButton(text, path, method, args, type, more = {}) {
	const key = method + " " + path;
	return button(text, key, () => {
		if (!more.question || window.confirm(more.question))
			act(key, () => client.call(path, SESSION, method, args, {type}));
	}, more.disabled);
}

function span(usec) {
	const sec = usec / 1e6;
	return sec >= 172800 ? Math.round(sec / 86400) + " d" : sec >= 7200 ? Math.round(sec / 3600) + " h" :
		sec >= 120 ? Math.round(sec / 60) + " min" : sec.toFixed(1) + " s";
}

// --- sessions

// What there was a second since the last time; null: not known yet
function rates(s, now) {
	const last = before.get(s.Name), sec = last && (now - last.now) / 1000;
	// a rate of a moment says nothing
	if (last && sec < 0.5)
		return last.rates;
	const counted = last && s.EventsTraced >= last.events && s.BytesRecorded >= last.bytes && s.CPUUSec >= last.cpu;
	const found = counted ? {events: (s.EventsTraced - last.events) / sec, bytes: (s.BytesRecorded - last.bytes) / sec,
		cpu: (s.CPUUSec - last.cpu) / 1e4 / sec} : null;
	before.set(s.Name, {now, events: s.EventsTraced, bytes: s.BytesRecorded, cpu: s.CPUUSec, rates: found});
	return found;
}

function costText(s, r) {
	const cost = costs.get(s.Name), parts = [];
	if (cost && cost.overhead_percent !== null)
		parts.push(figure(cost.overhead_percent) + "% of the machine");
	if (cost && cost.events_per_sec !== null)
		parts.push(figure(cost.events_per_sec) + " events/s");
	return parts.length ? parts.join(", ") : r ? "recorder: " + figure(r.cpu) + "% of a CPU" : "\u2013";
}

function costTitle(s) {
	const cost = costs.get(s.Name);
	return cost ? ["measured " + cost.at, ...cost.notes || []].join("; ") : "";
}

function lostText(s) {
	return s.LostEvents.toLocaleString() + (s.NotWritten > 0 ? ", " + s.NotWritten.toLocaleString() +
		" sub-buffers not written" : "");
}

function sessionRow(path, s, now) {
	const r = rates(s, now), lost = s.LostEvents > 0 || s.NotWritten > 0;
	const running = s.State === "recording" || s.State === "paused", flight = s.Mode === "flight";
	const rate = !r || !running ? "\u2013" : flight ? figure(r.events) + " events/s" :
		cockpit.format_bytes_per_sec(r.bytes);
	const state = s.State + (s.Failure ? ": " + s.Failure : "") +
		(s.Shed.length ? ", over MaxOverhead=, not recorded: " + s.Shed.join(" ") : "");
	const tr = element("tr", {},
		element("td", {textContent: s.Name, title: s.Description}),
		element("td", {textContent: state, className: s.Failure || s.Shed.length ? "bad" : ""}),
		element("td", {textContent: s.HistoryUSec ? span(s.HistoryUSec) : "\u2013"}),
		element("td", {textContent: rate}),
		element("td", {textContent: cockpit.format_bytes(s.BytesOnDisk)}),
		element("td", {textContent: lostText(s), className: lost ? "bad" : "",
			title: s.LastLossUSec > 0 ? "last " + new Date(s.LastLossUSec / 1000).toLocaleString() : ""}),
		element("td", {textContent: costText(s, r), title: costTitle(s)}),
		element("td", {className: "actions"},
			callButton("Snapshot", path, "Snapshot", [0, EVER, "control cockpit", false], "ttsb",
				{disabled: s.State !== "recording"}),
			running ? callButton("Stop", path, "Stop", [false], "b", {question: flight ?
				"Stop " + s.Name + "? What its ring buffers hold is lost without a snapshot." : ""}) :
				callButton("Start", path, "Start", [false], "b")));
	tr.dataset.key = s.Name;
	return tr;
}

// By flyrecctl, which counts events in the files
function measure() {
	act("measure", async () => {
		const said = await cockpit.spawn(["flyrecctl", "--json", "cost"], {superuser: "try", err: "message"});
		const at = new Date().toLocaleTimeString();
		for (const s of JSON.parse(said).sessions)
			costs.set(s.name, {...s, at});
	});
}

// --- snapshots

// A channel's data as a document of its own
function channel(options) {
	const base = new URL(cockpit.transport.uri("channel/" + cockpit.transport.csrf_token)).pathname;
	const text = JSON.stringify({superuser: "try", binary: "raw", ...options});
	return base + "?" + window.btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

// A report is full of names that other people chose. Should one be run as a script, it has an opaque origin: it gets
// at nothing of Cockpit's. Never without sandbox, never with allow-same-origin.
function openReport(path) {
	const wait = element("p", {textContent: "Reading the snapshot\u2026"});
	const frame = element("iframe", {title: path, onload: () => wait.remove()});
	frame.sandbox = "allow-scripts";
	frame.src = channel({payload: "stream", spawn: ["flyrecctl", "export", "--format=html", path],
		external: {"content-type": "text/html; charset=utf-8"}});
	byId("report").replaceChildren(element("h2", {textContent: path}),
		button("Close", "close", () => byId("report").replaceChildren()), wait, frame);
	frame.scrollIntoView();
}

function download(path) {
	const name = path.replace(/.*\//, "");
	element("a", {download: name, href: channel({payload: "fsread1", path, max_read_size: EVER,
		external: {"content-type": "application/octet-stream",
			"content-disposition": "attachment; filename=\"" + name + "\""}})}).click();
}

function snapshotRow([session, , path, bytes, , end, , pinned, , finding]) {
	const tr = element("tr", {},
		element("td", {textContent: new Date(end / 1000).toLocaleString()}),
		element("td", {textContent: session}),
		element("td", {textContent: path.replace(/.*Z-|\.dat$/g, "") + (pinned ? ", pinned" : "")}),
		element("td", {textContent: cockpit.format_bytes(bytes)}),
		element("td", {textContent: finding || "\u2013"}),
		element("td", {className: "actions"}, button("Open", "open " + path, () => openReport(path)),
			button("Download", "download " + path, () => download(path))));
	tr.dataset.key = path;
	return tr;
}

// flyrecd looks into all files to answer: not each time
async function listFiles(ask, sessions) {
	const key = JSON.stringify(sessions.map(s => [s.Name, s.Snapshots, s.SnapshotBytes]));
	if (!filesWanted && key === filesKey && performance.now() - filesAt < FILES_REFRESH)
		return;
	filesWanted = false;
	filesKey = undefined;
	const [all] = await ask(MANAGER, "ListFiles", [""], "s");
	files = all.filter(file => file[1] === "snapshot").sort((a, b) => b[5] - a[5]);
	filesKey = key;
	filesAt = performance.now();
}

// --- all of it

// By calls: most properties are not announced, and proxies keep what a flyrecd said that has gone. What a client
// answers that is no longer the page's does not matter, nor whether it ever does.
async function refresh() {
	if (busy === client) {
		again = true;
		return;
	}
	clearTimeout(timer);
	const mine = busy = client, ask = (face, name, args, type) => limit(mine.call(ROOT, face, name, args, {type}));
	let next = refresh;
	again = false;
	try {
		const [all] = await ask(OBJECTS, "GetManagedObjects", []);
		const [manager] = await ask(PROPERTIES, "GetAll", [MANAGER], "s");
		const sessions = Object.keys(all).filter(path => all[path][SESSION]).sort()
			.map(path => ({path, ...plain(all[path][SESSION])}));
		await listFiles(ask, sessions);
		if (mine !== client)
			return;
		show(sessions, plain(manager));
		if (byId("problem").dataset.of === "refresh")
			problem(null);
	} catch (e) {
		if (mine !== client)
			return;
		lost(e);
		// the bus and flyrecd have names for what they say; all else is of a bridge that may have lost the bus
		if (!String(e.name).startsWith("org.freedesktop.DBus.Error."))
			next = connect;
	}
	busy = null;
	document.body.dataset.ready = "yes";
	if (again && next === refresh)
		timer = setTimeout(next, SOON);
	else if (!cockpit.hidden)
		timer = setTimeout(next, REFRESH);
}

// Nothing stays that may no longer be true
function lost(e) {
	const gone = e.name === "org.freedesktop.DBus.Error.ServiceUnknown" || e.problem === "not-found";
	files = [];
	filesWanted = true;
	show([], null);
	problem(gone ? "flyrecd is not running" : e, true);
}

function show(sessions, manager) {
	const now = performance.now();
	byId("daemon").textContent = manager ? "flyrecd " + manager.Version + ", " + manager.State : "";
	update("sessions", sessions.map(s => sessionRow(s.path, s, now)));
	update("snapshots", files.slice(0, SNAPSHOTS).map(snapshotRow));
	byId("older").hidden = files.length <= SNAPSHOTS;
	byId("older").textContent = files.length - SNAPSHOTS + " older ones: flyrecctl list";
}

// Only what is different is replaced, so that a button is not gone while it is pressed
function update(id, rows) {
	const body = byId(id), old = new Map([...body.rows].map(row => [row.dataset.key, row]));
	rows = rows.map(row => {
		const same = old.get(row.dataset.key);
		if (!same)
			return row;
		[...row.cells].forEach((cell, n) => same.cells[n].isEqualNode(cell) || same.cells[n].replaceWith(cell));
		return same;
	});
	if (rows.length !== body.rows.length || rows.some((row, n) => row !== body.rows[n]))
		body.replaceChildren(...rows);
}

function connect() {
	clearTimeout(timer);
	const before = client, mine = client = cockpit.dbus(NAME, {bus: "system", superuser: "try"});
	// not the page's any more when it says so: else it would be thought lost, and the next one made
	if (before)
		before.close();
	const changed = () => cockpit.hidden || refresh();
	mine.subscribe({interface: MANAGER, path: ROOT}, () => {
		filesWanted = true;
		changed();
	});
	mine.subscribe({interface: PROPERTIES, path_namespace: ROOT}, changed);
	mine.subscribe({interface: OBJECTS, path_namespace: ROOT}, changed);
	mine.addEventListener("owner", changed);
	mine.addEventListener("close", (event, options) => {
		if (mine !== client)
			return;
		// the bus has ended: there may be another one
		lost(options);
		setTimeout(() => mine === client && connect(), REFRESH);
	});
	refresh();
}

// As each page does for itself: the shell only says that its style has changed
const dark = window.matchMedia("(prefers-color-scheme: dark)");
function restyle(style) {
	style = style || localStorage.getItem("shell:style") || "auto";
	document.documentElement.classList.toggle("dark", style === "dark" || (style === "auto" && dark.matches));
}
window.addEventListener("storage", event => {
	if (event.key === "shell:style")
		restyle();
});
window.addEventListener("cockpit-style", event => restyle(event.detail.style));
dark.addEventListener("change", () => restyle());
restyle();

cockpit.transport.wait(() => {
	byId("measure").onclick = measure;
	cockpit.permission({admin: true}).addEventListener("changed", connect);
	cockpit.addEventListener("visibilitychange", () => cockpit.hidden || refresh());
	document.body.hidden = false;
	connect();
});
