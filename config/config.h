/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The configuration as plain values: flyrecd.conf with its drop-ins, and one session per file in
 * sessions.d. A new config is parsed whole and validated before anything looks at it; a bad one
 * never replaces a good one. Main thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"
#include "recorder/trace-config.h"
#include "writer/storage-config.h"

enum session_mode {
	SESSION_RECORD,
	SESSION_FLIGHT,
};

/* They hold for members of group flyrec even where triggers have no limit */
#define SNAPSHOT_BURST	       5U
#define SNAPSHOT_INTERVAL_USEC (60 * USEC_PER_SEC)

struct snapshot_config {
	uint64_t last_usec; /* 0: everything there is */
	uint64_t post_usec;
	bool on_signal;	    /* default yes */
	char **on_pressure; /* "memory some 150ms 1s" */
	char **on_event;    /* "oom:mark_victim if …" */
	char **on_unit_failed;
	char **on_latency;	     /* "runqueue 20ms …", see config/latency.h */
	char **latency_events;	     /* what those take and Event= did not have; no key */
	char **on_journal;	     /* "FIELD=VALUE …", see config/journal-match.h */
	uint64_t peer_max_usec;	     /* the longest window that other hosts may ask for; 0: none */
	unsigned burst;		     /* default SNAPSHOT_BURST per interval_usec; 0: no limit */
	uint64_t interval_usec;	     /* default SNAPSHOT_INTERVAL_USEC; 0: no limit */
	char *method;		     /* auto | mapped | swap | drain */
	uint64_t memory;	     /* default 64 MiB */
	uint64_t max_use;	     /* STORAGE_DEFAULT as for segments */
	uint64_t max_files;	     /* 0: no limit; default 100 */
	uint64_t max_retention_usec; /* 0: no limit (default) */
	bool coresight;
	bool analyze; /* default yes */
	bool journal; /* default no */
};

struct snapshot_burst {
	unsigned burst;
	uint64_t interval_usec;
};

/* Burst= and IntervalSec= for those who shall not be without a limit, whatever is configured */
static inline struct snapshot_burst snapshot_burst_of_guests(const struct snapshot_config *config)
{
	return (struct snapshot_burst){
		.burst = config->burst > 0 ? config->burst : SNAPSHOT_BURST,
		.interval_usec =
			config->interval_usec > 0 ? config->interval_usec : SNAPSHOT_INTERVAL_USEC,
	};
}

/* Is it one that a session can have? */
bool config_is_session_name(const char *name);

struct session_config {
	char *name;
	char *path;	   /* the file it came from */
	char *description; /* or NULL */
	enum session_mode mode;
	bool enabled;	/* default yes */
	char **uprobes; /* Uprobe= and Usdt= as written; trace has them without shorthands */
	char **usdts;
	unsigned max_overhead; /* hundredths of a percent of the machine's CPU time; 0: no limit */
	char **shed;	       /* SYSTEM:NAME or SYSTEM, first to go first */
	struct trace_config trace;
	struct storage_config storage;
	struct snapshot_config snapshot;
	/*
	 * All of the above in one canonical text: two configs with the same trace_text want the
	 * same kernel instance, two with the same text are the same session.
	 */
	char *trace_text;
	char *text;
};

struct daemon_config {
	unsigned workers;		  /* threads a session; 0: chosen from the number of CPUs */
	int log_level;			  /* LOG_ERR … LOG_DEBUG */
	char *admin_group;		  /* or NULL */
	char *instance_prefix;		  /* default "flyrec." */
	struct session_config **sessions; /* sorted by name */
	size_t n_sessions;
};

enum config_severity {
	CONFIG_WARNING, /* an unknown key or section: what it says is ignored */
	CONFIG_ERROR, /* a session with one is left out; a key of flyrecd.conf keeps its default */
};

/* Called for every complaint; @line 0: the file as such, it cannot be read. */
typedef void (*config_complain_t)(enum config_severity severity, const char *file, unsigned line,
				  const char *text, void *userdata);

/**
 * config_load() - read and validate everything below @config_dir
 * @config_dir: e.g. /etc/flyrec
 * @vendor_dir: e.g. /usr/lib/flyrec; its files are overridden by same-named ones; NULL or may lack
 * @complain: called for each fault with file and line, also for unknown keys and sections
 * @ret: the configuration
 * @ret_n_faults: complaints made, of both severities; may be NULL. A session with an error is left
 *                out of @ret, the others are in it.
 * A symlink to /dev/null masks a vendor's file of the same name, as in systemd. A missing
 * @config_dir is a warning: there are the vendor's sessions and the defaults.
 * Nothing is touched: no tracefs, no state directory.
 * Return: 0, or negative errno when nothing at all could be read (a complaint says why).
 */
int config_load(const char *config_dir, const char *vendor_dir, config_complain_t complain,
		void *userdata, struct daemon_config **ret, unsigned *ret_n_faults);

/* What config_check() asks of Uprobe= and Usdt=, @text as in trace: 0, or negative errno with @why
 */
typedef int (*config_check_probe_t)(const char *key, const char *text, struct fault *why);

/**
 * config_check() - config_load() that has the probes of each enabled session checked as well
 * Unlike the rest this depends on the programs on this machine, which may change.
 */
int config_check(const char *config_dir, const char *vendor_dir, config_check_probe_t on_probe,
		 config_complain_t complain, void *userdata, unsigned *ret_n_faults);

/**
 * config_free() - forget a configuration and its sessions; NULL is fine
 */
void config_free(struct daemon_config *config);

/**
 * config_find() - a session's config by name, or NULL
 */
const struct session_config *config_find(const struct daemon_config *config, const char *name);

/**
 * session_config_copy() - a deep copy, so that a session outlives a reload
 */
int session_config_copy(const struct session_config *config, struct session_config **ret);

/**
 * session_config_retext() - trace_text and text anew, after its values have been changed
 * Return: 0 or -ENOMEM.
 */
int session_config_retext(struct session_config *config);

/**
 * session_config_free() - NULL is fine
 */
void session_config_free(struct session_config *config);

DEFINE_CLEANUP(struct daemon_config *, config_free)
DEFINE_CLEANUP(struct session_config *, session_config_free)
