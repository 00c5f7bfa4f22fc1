/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "basic/ini.h"
#include "basic/strv.h"
#include "config/config-session.h"
#include "config/latency-kernel.h"
#include "config/latency.h"
#include "config/probe-args.h"
#include "formats/trace-clock.h"

/* One file being read */
struct reading {
	struct config_reader *reader;
	enum config_file_kind kind;
	struct daemon_config *daemon; /* for [Daemon] */
	const struct daemon_config *daemon_defaults;
	struct session_config *session; /* for all other sections */
	const struct session_config *defaults;
	bool section_ignored;
};

void config_complain(struct config_reader *reader, enum config_severity severity, const char *file,
		     unsigned line, const char *format, ...)
{
	struct fault fault = {};
	va_list ap;

	if (severity == CONFIG_ERROR)
		reader->n_errors++;
	else
		reader->n_warnings++;
	va_start(ap, format);
	(void)vsnprintf(fault.text, sizeof(fault.text), format, ap);
	va_end(ap);
	if (reader->complain)
		reader->complain(severity, file, line, fault.text, reader->userdata);
}

void config_reader_forget(struct config_reader *reader)
{
	for (size_t i = 0; i < reader->n_probes; i++) {
		free(reader->probes[i].file);
		free(reader->probes[i].text);
	}
	free(reader->probes);
	reader->probes = NULL;
	reader->n_probes = 0;
}

static bool is_daemon_key(const struct config_key *key)
{
	return strcmp(key->section, "Daemon") == 0;
}

/* --- reading */

static void on_fault(const char *file, unsigned line, const char *text, void *userdata)
{
	struct reading *reading = userdata;

	config_complain(reading->reader, CONFIG_ERROR, file, line, "%s", text);
}

/* As in systemd: sections and keys that begin with X- are for others, and nobody complains */
static bool is_extension(const char *name)
{
	return strncmp(name, "X-", 2) == 0;
}

static void on_section(struct reading *reading, const struct ini_entry *entry)
{
	struct fault why = {};

	reading->section_ignored = !config_section_known(reading->kind, entry->section);
	if (!reading->section_ignored || is_extension(entry->section))
		return;
	config_explain_section(reading->kind, entry->section, &why);
	config_complain(reading->reader, CONFIG_WARNING, entry->file, entry->line, "%s", why.text);
}

/* Probes of programs are checked when it is known which of them the session has */
static int keep_line(struct reading *reading, const struct config_key *key,
		     const struct ini_entry *entry)
{
	struct config_reader *reader = reading->reader;
	struct config_line line = {.line = entry->line, .key = key->name};

	if (!reader->on_probe || (key->offset != offsetof(struct session_config, uprobes) &&
				  key->offset != offsetof(struct session_config, usdts)))
		return 0;
	if (array_grow(&reader->probes, reader->n_probes, sizeof(line)) < 0)
		return -ENOMEM;
	line.file = strdup(entry->file);
	if (!line.file || value_squeeze(entry->value, &line.text) < 0) {
		free(line.file);
		return -ENOMEM;
	}
	reader->probes[reader->n_probes++] = line;
	return 0;
}

static int assign(struct reading *reading, const struct config_key *key,
		  const struct ini_entry *entry)
{
	void *object = reading->session;
	const void *defaults = reading->defaults;
	struct fault why = {};
	int r;

	if (is_daemon_key(key)) {
		object = reading->daemon;
		defaults = reading->daemon_defaults;
	}
	if (!*entry->value)
		return value_reset(key, object, defaults);
	r = key->kind->parse(key, object, entry->value, &why);
	if (r == -EINVAL)
		config_complain(reading->reader, CONFIG_ERROR, entry->file, entry->line,
				"%s=%s: %s", entry->key, entry->value, why.text);
	else if (r >= 0 && config_key_unsupported(key, object))
		config_complain(reading->reader, CONFIG_ERROR, entry->file, entry->line,
				"%s=%s is not supported by this build", entry->key, entry->value);
	else
		return r < 0 ? r : keep_line(reading, key, entry);
	return value_reset(key, object, defaults);
}

static int on_entry(const struct ini_entry *entry, void *userdata)
{
	struct reading *reading = userdata;
	const struct config_key *key;
	struct fault why = {};

	if (!entry->key) {
		on_section(reading, entry);
		return 0;
	}
	if (reading->section_ignored || is_extension(entry->key))
		return 0;
	key = config_key_find(reading->kind, entry->section, entry->key);
	if (key)
		return assign(reading, key, entry);
	config_explain_key(reading->kind, entry->section, entry->key, &why);
	config_complain(reading->reader, CONFIG_WARNING, entry->file, entry->line, "%s", why.text);
	return 0;
}

static const struct ini_handler handler = {.on_entry = on_entry, .on_fault = on_fault};

int session_config_read(struct config_reader *reader, const char *file, const char *text,
			size_t size, const struct session_config *defaults,
			struct session_config *session)
{
	_cleanup_(session_config_freep) struct session_config *builtin = NULL;
	struct reading reading = {
		.reader = reader,
		.kind = CONFIG_FILE_SESSION,
		.session = session,
	};
	int r;

	r = session_config_new(session->name, defaults, &builtin);
	if (r < 0)
		return r;
	reading.defaults = builtin;
	return ini_parse(file, text, size, &handler, &reading);
}

int daemon_config_read(struct config_reader *reader, const char *file, const char *text,
		       size_t size, const struct session_config *builtin,
		       struct session_config *defaults, struct daemon_config *daemon)
{
	struct daemon_config daemon_defaults = {};
	struct reading reading = {
		.reader = reader,
		.kind = CONFIG_FILE_DAEMON,
		.daemon = daemon,
		.daemon_defaults = &daemon_defaults,
		.session = defaults,
		.defaults = builtin,
	};
	int r;

	r = daemon_config_init(&daemon_defaults);
	if (r >= 0)
		r = ini_parse(file, text, size, &handler, &reading);
	daemon_config_done(&daemon_defaults);
	return r;
}

/* --- objects */

int daemon_config_init(struct daemon_config *daemon)
{
	for (size_t i = 0; i < config_n_keys; i++)
		if (is_daemon_key(&config_keys[i]) && value_init(&config_keys[i], daemon) < 0)
			return -ENOMEM;
	return 0;
}

void daemon_config_done(struct daemon_config *daemon)
{
	for (size_t i = 0; i < config_n_keys; i++)
		if (is_daemon_key(&config_keys[i]))
			config_keys[i].kind->clear(&config_keys[i], daemon);
}

int session_config_new(const char *name, const struct session_config *defaults,
		       struct session_config **ret)
{
	_cleanup_(session_config_freep) struct session_config *session =
		calloc(1, sizeof(*session));

	if (!session)
		return -ENOMEM;
	session->name = strdup(name);
	if (!session->name)
		return -ENOMEM;
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];
		int r;

		if (is_daemon_key(key))
			continue;
		r = value_init(key, session);
		if (r >= 0 && defaults && (key->files & CONFIG_FILE_DAEMON)) {
			key->kind->clear(key, session);
			r = key->kind->copy(key, defaults, session);
		}
		if (r < 0)
			return -ENOMEM;
	}
	*ret = TAKE_PTR(session);
	return 0;
}

void session_config_free(struct session_config *config)
{
	if (!config)
		return;
	for (size_t i = 0; i < config_n_keys; i++)
		if (!is_daemon_key(&config_keys[i]))
			config_keys[i].kind->clear(&config_keys[i], config);
	free(config->name);
	free(config->path);
	free(config->trace_text);
	free(config->text);
	strv_free(config->trace.uprobes);
	strv_free(config->trace.usdts);
	strv_free(config->snapshot.latency_events);
	free(config);
}

int session_config_copy(const struct session_config *config, struct session_config **ret)
{
	_cleanup_(session_config_freep) struct session_config *copy = NULL;
	int r;

	r = session_config_new(config->name, NULL, &copy);
	if (r < 0)
		return r;
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (is_daemon_key(key))
			continue;
		key->kind->clear(key, copy);
		if (key->kind->copy(key, config, copy) < 0)
			return -ENOMEM;
	}
	if (strv_set(&copy->path, config->path) < 0 ||
	    strv_set(&copy->trace_text, config->trace_text) < 0 ||
	    strv_set(&copy->text, config->text) < 0 ||
	    strv_copy(config->snapshot.latency_events, &copy->snapshot.latency_events) < 0 ||
	    strv_copy(config->trace.uprobes, &copy->trace.uprobes) < 0 ||
	    strv_copy(config->trace.usdts, &copy->trace.usdts) < 0)
		return -ENOMEM;
	*ret = TAKE_PTR(copy);
	return 0;
}

/* --- after the last file */

static bool traces_anything(const struct trace_config *trace)
{
	return trace->n_events > 0 || trace->n_triggers > 0 || trace->tracer || trace->kprobes ||
	       trace->uprobes || trace->usdts || trace->options;
}

/* Does @a have what @b has? */
static bool same_value(const struct config_key *key, const struct session_config *a,
		       const struct session_config *b)
{
	const struct session_config *both[] = {a, b};
	char *texts[2] = {};
	bool same = false;
	size_t size;

	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		FILE *f = open_memstream(&texts[i], &size);

		if (f)
			key->kind->print(key, both[i], f);
		if (!f || fclose(f) != 0)
			goto end;
	}
	same = strcmp(texts[0], texts[1]) == 0;
end:
	free(texts[0]);
	free(texts[1]);
	return same;
}

/* @section: or NULL for all of them; @defaults: or NULL to have them as well */
static int print_keys(const struct session_config *session, const char *section,
		      const struct session_config *defaults, char **ret)
{
	const char *last = "";
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return -ENOMEM;
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (is_daemon_key(key) || (section && strcmp(section, key->section) != 0))
			continue;
		if (defaults && same_value(key, session, defaults))
			continue;
		if (strcmp(last, key->section) != 0)
			(void)fprintf(f, "[%s]\n", key->section);
		last = key->section;
		key->kind->print(key, session, f);
	}
	if (fclose(f) != 0) {
		free(text);
		return -ENOMEM;
	}
	free(*ret);
	*ret = text;
	return 0;
}

int session_config_retext(struct session_config *session)
{
	_cleanup_(session_config_freep) struct session_config *defaults = NULL;
	int r = session_config_new(session->name, NULL, &defaults);

	/* Without them, so that a version with other keys takes up what this one has set up */
	if (r >= 0)
		r = print_keys(session, "Trace", defaults, &session->trace_text);
	return r < 0 ? r : print_keys(session, NULL, NULL, &session->text);
}

/* By itself or as the action of a hist trigger */
static bool takes_snapshots(const struct trace_trigger *trigger)
{
	const char *word = "snapshot";
	size_t size = strlen(word);

	return (strncmp(trigger->trigger, word, size) == 0 &&
		strchr(": ", trigger->trigger[size])) ||
	       strstr(trigger->trigger, ".snapshot(");
}

/* They have been checked */
static int expand(char *const *probes, char ***to)
{
	struct fault why;

	STRV_FOREACH (text, probes) {
		_cleanup_free_ char *named = NULL, *line = NULL;
		int r = probe_args_name(*text, &named);

		if (r >= 0)
			r = probe_args_expand(named, NULL, &line, &why);
		if (r >= 0)
			r = strv_append(to, line);
		if (r < 0)
			return r;
	}
	return 0;
}

static int expand_probes(struct session_config *session)
{
	int r = expand(session->uprobes, &session->trace.uprobes);

	return r < 0 ? r : expand(session->usdts, &session->trace.usdts);
}

/* Those that were not reset later */
static void check_probes(struct config_reader *reader, const struct session_config *session)
{
	for (size_t i = 0; session->enabled && i < reader->n_probes; i++) {
		const struct config_line *line = &reader->probes[i];
		_cleanup_free_ char *named = NULL;
		struct fault why = {};

		if (!strv_contains(session->uprobes, line->text) &&
		    !strv_contains(session->usdts, line->text))
			continue;
		if (probe_args_name(line->text, &named) >= 0 &&
		    reader->on_probe(line->key, named, &why) < 0)
			config_complain(reader, CONFIG_ERROR, line->file, line->line, "%s=%s: %s",
					line->key, line->text, why.text);
	}
}

/* The event that the kernel makes of a hit is recorded, too; @number: of those with way=kernel */
static int add_kernel_event(const struct latency_config *latency, unsigned number,
			    struct trace_config *trace)
{
	_cleanup_free_ char *event = latency_kernel_event(latency, number);

	return event ? strv_append(&trace->synthetic_events, event) : -ENOMEM;
}

static bool is_repeated(char *const *list, char *const *line)
{
	for (; list < line; list++)
		if (strcmp(*list, *line) == 0)
			return true;
	return false;
}

/* Events that OnLatency= takes are recorded like those of Event= */
static int add_latency_events(struct config_reader *reader, const char *file,
			      struct session_config *session)
{
	struct trace_config *trace = &session->trace;
	unsigned n_kernel = 0;

	if (session->snapshot.on_latency && !trace_clock_counts_time(trace->clock))
		config_complain(reader, CONFIG_ERROR, file, 1,
				"OnLatency=, here or in flyrecd.conf, cannot be combined with "
				"Clock=%s, which counts no time",
				trace->clock);
	STRV_FOREACH (text, session->snapshot.on_latency) {
		_cleanup_(latency_done) struct latency_config latency = {};
		struct fault why = {};
		int r = latency_parse(*text, true, &latency, &why);

		if (r >= 0 && !latency.in_kernel)
			r = latency_add_events(&latency, trace, &session->snapshot.latency_events,
					       &why);
		if (r >= 0 && latency.in_kernel && !is_repeated(session->snapshot.on_latency, text))
			r = add_kernel_event(&latency, ++n_kernel, trace);
		if (r == -EINVAL)
			config_complain(reader, CONFIG_ERROR, file, 1, "OnLatency=%s: %s", *text,
					why.text);
		else if (r < 0)
			return r;
	}
	return 0;
}

int session_config_finish(struct config_reader *reader, const char *file,
			  struct session_config *session)
{
	struct storage_config *storage = &session->storage;
	struct trace_config *trace = &session->trace;
	int r = expand_probes(session);

	if (r < 0)
		return r;
	if (trace->tracer && strcmp(trace->tracer, "nop") == 0) {
		free(trace->tracer);
		trace->tracer = NULL;
	}
	/* With another clock than the one it begins with, Linux 7 forgets the first CPU at a boot
	 */
	if (!trace->clock)
		trace->clock = strdup(trace->persistent ? "local" : "mono");
	if (!trace->clock)
		return -ENOMEM;
	r = add_latency_events(reader, file, session);
	if (r < 0)
		return r;
	if (trace->persistent && trace->subbuf_size != SUBBUF_SIZE_AUTO)
		config_complain(reader, CONFIG_ERROR, file, 1,
				"SubBufferSize= cannot be combined with Persistent=yes: the buffer "
				"layout is fixed at boot");
	if (session->snapshot.last_usec > 0 && !trace_clock_counts_time(trace->clock))
		config_complain(
			reader, CONFIG_ERROR, file, 1,
			"Last=, here or in flyrecd.conf, cannot be combined with Clock=%s, which "
			"counts no time: give Last=0",
			trace->clock);
	/* as in journald: one file is never more than all of them */
	if (storage->max_file_size != STORAGE_DEFAULT)
		storage->max_file_size = MIN(storage->max_file_size, storage->max_use);
	if (session->mode == SESSION_RECORD && !traces_anything(trace))
		config_complain(reader, CONFIG_ERROR, file, 1,
				"this session traces nothing: [Trace] needs an Event=, "
				"EventTrigger=, Tracer=, Kprobe=, Uprobe=, Usdt= or Option=");
	check_probes(reader, session);
	for (size_t i = 0; session->mode == SESSION_RECORD && i < trace->n_triggers; i++)
		if (takes_snapshots(&trace->triggers[i]))
			config_complain(
				reader, CONFIG_ERROR, file, 1,
				"EventTrigger=%s:%s %s cannot be combined with Mode=record: the kernel would "
				"take away what is not recorded yet",
				trace->triggers[i].system, trace->triggers[i].name,
				trace->triggers[i].trigger);
	return session_config_retext(session);
}
