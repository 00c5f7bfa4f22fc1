/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the modules of the control socket share. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "daemon/control/control-access.h"
#include "daemon/control/control-relay.h"
#include "daemon/control/control.h"
#include "daemon/plumbing/priority.h"
#include "daemon/plumbing/state-root.h"
#include "daemon/session/session.h"

#define CONTROL_PATH	      "/org/flyrec/Recorder1"
#define CONTROL_SESSION_PATH  CONTROL_PATH "/session"
#define CONTROL_BUS_NAME      "org.flyrec.Recorder1"
#define CONTROL_MANAGER	      "org.flyrec.Recorder1.Manager"
#define CONTROL_SESSION	      "org.flyrec.Recorder1.Session"
#define CONTROL_ERROR(word)   "org.flyrec.Recorder1.Error." word
#define CONTROL_ERROR_REFUSED CONTROL_ERROR("Refused") /* by the kernel, the disk, the state */

#define CONTROL_PEERS_MAX	256
#define CONTROL_PEERS_RESERVED	64   /* of them, for root and AdminGroup= */
#define CONTROL_PEERS_PER_UID	64   /* root aside */
#define CONTROL_STRANGERS_MAX	16   /* who may do nothing but be refused */
#define CONTROL_CALLS_MAX	16   /* of a peer, of a user on the system bus, not answered yet */
#define CONTROL_QUEUE_MAX	64   /* messages that a peer has not read */
#define CONTROL_BUS_QUEUE_MAX	8192 /* messages that the system bus has not taken */
#define CONTROL_BUS_ANSWERS_MAX 8    /* so many, and calls over it wait */
#define CONTROL_WORKS_MAX	16   /* threads for calls about files */
#define CONTROL_WORKS_RESERVED	4
#define CONTROL_WORKS_PER_UID	2 /* root aside */
#define CONTROL_TAILS_MAX	64
#define CONTROL_TAILS_RESERVED	16
#define CONTROL_TAILS_PER_UID	16 /* root aside */
#define CONTROL_PATIENCE_USEC \
	(10 * USEC_PER_SEC) /* with a greeting that does not end, a stranger */

struct system_bus;
struct work;

struct control_request {
	struct control_request *next;
	struct peer *peer; /* NULL: it has gone */
	struct control *control;
	sd_bus_message *call;
	uid_t uid;
	void (*on_gone)(void *userdata); /* see control_request_on_gone() */
	void *gone_userdata;
	sd_bus_slot *owner_slot, *look_slot; /* of a caller on the system bus */
	char *complaints;		     /* of a reload */
	struct control_request *next_reload;
};

/* A connection; the system bus is one too */
struct peer {
	struct peer *next;
	struct control *control;
	sd_bus *bus;
	struct relay *relay;
	int fd;			     /* its socket; sd-bus has a duplicate */
	bool refuses;		     /* descriptors, from its beginning: guard_refuses() */
	sd_event_source *end_source; /* it is to be freed */
	sd_event_source *patience_source;
	struct access_peer who; /* not for the system bus */
	struct control_request *requests;
	unsigned n_requests;
	bool system;
	bool subscribed; /* wants signals */
	bool hang_up;	 /* when it has the last answer */
};

struct control {
	struct manager *manager;
	const struct environment *env; /* the manager's */
	sd_id128_t id;
	int listen_fd;
	char *path; /* of our own socket; NULL: it was passed to us */
	sd_event_source *listen_source, *pause_source;
	struct peer *peers;
	unsigned n_peers;
	struct access_groups groups;
	struct control_request *reloads; /* answered when the reload is over */
	struct work *works;		 /* in the order of the calls */
	struct system_bus *system;
};

/* control-peer.c: peers, and a filter on their connections, before any object is looked at */
struct peer *control_find_peer(struct control *control, sd_bus *bus);
struct peer *peer_new(struct control *control);
void peer_free(struct peer *peer);
/* Free it soon: not from within a call of sd-bus */
void peer_end(struct peer *peer);
/* A peer that does not read what it asked for is cut off, the system bus left for a while */
void peer_check_queue(struct peer *peer);
int control_bus_filter(sd_bus_message *m, void *userdata, sd_bus_error *error);
/* He may do nothing at all */
bool control_is_stranger(const struct control *control, const struct access_peer *who);
/* The refusal, or 0 */
int control_check_access(struct control *control, const struct access_peer *who, sd_bus_message *m);

/* control-system.c: who sent this call, which has been let through; NULL, or -1: it is not known
 * any more */
const struct access_peer *control_caller(struct control *control, sd_bus_message *m);
uid_t control_caller_uid(struct control *control, sd_bus_message *m);
/* root or AdminGroup=, for whom some of each kind of place is kept */
bool control_caller_is_admin(struct control *control, sd_bus_message *m);
/* On an error, too, there is an object, but for -ENOMEM: it tries again later */
int system_bus_new(struct control *control, int (*add_objects)(struct control *c, sd_bus *bus),
		   struct system_bus **ret);
void system_bus_free(struct system_bus *system);
/* Leave it for a while, with all that it has not taken */
void system_bus_leave(struct system_bus *system);

/*
 * control-request.c
 *
 * control_request_new() - this call is answered later
 * Return: 0, or what the handler is to return (too many open calls: the error has been set).
 */
int control_request_new(struct control *control, sd_bus_message *call, sd_bus_error *error,
			struct control_request **ret);
/**
 * control_request_on_gone() - call @on_gone if the caller goes before it is answered
 * Once; the request is there until then, and may be answered from within.
 */
void control_request_on_gone(struct control_request *request, void (*on_gone)(void *userdata),
			     void *userdata);
/* Answer, or not if the peer has gone, and free it. @why: the text if @result is negative */
void control_request_reply(struct control_request *request, int result, sd_bus_message *reply,
			   const char *why);
/* The same with values as for sd_bus_message_append() */
void control_request_answer(struct control_request *request, int result, const char *why,
			    const char *types, ...);
void control_request_fail(struct control_request *request, const char *name, const char *text);
/* By a negative errno, or without values if @result is 0 */
void control_request_done(struct control_request *request, int result, const char *text);
void control_forget_requests(struct peer *peer);

/*
 * What a caller names in an error's text: its beginning, if it is long. An answer is not to be as
 * long as callers like.
 */
struct control_shown {
	char text[72];
};
struct control_shown control_shown(const char *name);

/*
 * control_work() - do the slow part of a call on a thread of its own, when it is its turn
 * @work: touches only @data. @answer: on the main thread; it ends the request and frees @data.
 * Return: 1, as a handler does. What failed has been answered, and @answer was called with it.
 */
int control_work(struct control_request *request, int (*work)(void *data),
		 void (*answer)(struct control_request *request, void *data, int result),
		 void *data);
/* A peer has read its answers, or gone: whose turn is it? */
void control_start_works(struct control *control);

/* control-manager.c, control-session.c */
extern const sd_bus_vtable control_manager_vtable[];
extern const sd_bus_vtable control_session_vtable[];
int control_find_session(sd_bus *bus, const char *path, const char *interface, void *userdata,
			 void **ret, sd_bus_error *error);
int control_list_sessions(sd_bus *bus, const char *prefix, void *userdata, char ***ret,
			  sd_bus_error *error);

/* control-manager.c: of a struct control: a start or a reload is over */
void control_reloaded(void *control);

/* control-session.c */
void control_session_path(const char *name, char **ret);
/* The error, which names one that is called alike */
int control_no_session(struct control *control, const char *name, sd_bus_error *error);
/* The session that a call is for; it must exist, not only be configured */
struct session *control_session_of(sd_bus_message *m, struct control *control, sd_bus_error *error);

/* control-snapshot.c */
int control_snapshot(sd_bus_message *m, void *userdata, sd_bus_error *error);
int control_trigger(sd_bus_message *m, void *userdata, sd_bus_error *error);
int control_snapshot_coresight(sd_bus_message *m, void *userdata, sd_bus_error *error);
int control_snapshot_limited(sd_bus_message *m, void *userdata, sd_bus_error *error);
int control_snapshot_together(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* control-files.c */
int control_list_files(sd_bus_message *m, void *userdata, sd_bus_error *error);
int control_open_file(sd_bus_message *m, void *userdata, sd_bus_error *error);
int control_pin_file(sd_bus_message *m, void *userdata, sd_bus_error *error);
int control_vacuum(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* control-change.c */
int control_start(sd_bus_message *m, void *userdata, sd_bus_error *error);
int control_stop(sd_bus_message *m, void *userdata, sd_bus_error *error);
int control_enable_events(sd_bus_message *m, void *userdata, sd_bus_error *error);
int control_disable_events(sd_bus_message *m, void *userdata, sd_bus_error *error);
int control_set_filter(sd_bus_message *m, void *userdata, sd_bus_error *error);
