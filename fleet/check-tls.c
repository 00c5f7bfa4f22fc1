/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Certificates: those of this host, by themselves, and that of the broker, in a handshake of which
 * the library of MQTT would say only that it failed.
 */
#include <errno.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "basic/strv.h"
#include "fleet/check-tls.h"

#define SOON_SEC     (14 * 24 * 3600) /* a certificate that ends by then is worth a word */
#define PATIENCE_SEC 5

DEFINE_CLEANUP(X509 *, X509_free)
DEFINE_CLEANUP(EVP_PKEY *, EVP_PKEY_free)
DEFINE_CLEANUP(X509_STORE *, X509_STORE_free)
DEFINE_CLEANUP(X509_STORE_CTX *, X509_STORE_CTX_free)
DEFINE_CLEANUP(SSL_CTX *, SSL_CTX_free)
DEFINE_CLEANUP(SSL *, SSL_free)

/* The last of the library's errors */
static const char *tls_error(void)
{
	const char *text = ERR_reason_error_string(ERR_peek_last_error());

	ERR_clear_error();
	return text ? text : "connection lost";
}

/* --- files */

static FILE *open_file(struct check *check, const char *key, const char *path)
{
	FILE *f = fopen(path, "re");

	if (!f)
		check_fail(check, "certificate", "%s=%s: %s", key, path, strerror(errno));
	return f;
}

static X509 *read_certificate(struct check *check, const char *key, const char *path)
{
	_cleanup_fclose_ FILE *f = open_file(check, key, path);
	X509 *certificate = f ? PEM_read_X509(f, NULL, NULL, NULL) : NULL;

	if (f && !certificate)
		check_fail(check, "certificate", "%s=%s: no certificate in PEM form", key, path);
	ERR_clear_error();
	return certificate;
}

/* Without asking for a passphrase */
static int no_passphrase(char *to, int size, int writing, void *userdata)
{
	return 0;
}

static EVP_PKEY *read_key(struct check *check, const char *path)
{
	_cleanup_fclose_ FILE *f = open_file(check, "Key", path);
	EVP_PKEY *key = f ? PEM_read_PrivateKey(f, NULL, no_passphrase, NULL) : NULL;
	struct stat st;

	if (f && !key)
		check_fail(check, "certificate", "Key=%s: no key in PEM form, without a passphrase",
			   path);
	if (f && fstat(fileno(f), &st) == 0 && (st.st_mode & (S_IROTH | S_IWOTH)))
		check_warn(check, "certificate", "Key=%s: all users may read it", path);
	ERR_clear_error();
	return key;
}

/* --- what is in them */

static char *time_text(const ASN1_TIME *time)
{
	struct tm tm;
	char text[32];

	if (ASN1_TIME_to_tm(time, &tm) != 1 ||
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm) == 0)
		return strdup("?");
	return strdup(text);
}

/* Return: is it valid now? */
static bool check_dates(struct check *check, const char *key, const char *path,
			const X509 *certificate)
{
	const ASN1_TIME *begin = X509_get0_notBefore(certificate);
	const ASN1_TIME *end = X509_get0_notAfter(certificate);
	_cleanup_free_ char *from = time_text(begin), *to = time_text(end);
	time_t soon = time(NULL) + SOON_SEC;

	if (X509_cmp_current_time(begin) > 0)
		check_fail(check, "certificate",
			   "%s=%s: not valid before %s: is this machine's clock right?", key, path,
			   from);
	else if (X509_cmp_current_time(end) < 0)
		check_fail(check, "certificate", "%s=%s: expired at %s", key, path, to);
	else if (X509_cmp_time(end, &soon) < 0)
		check_warn(check, "certificate", "%s=%s: expires at %s", key, path, to);
	else
		return true;
	return X509_cmp_current_time(begin) <= 0 && X509_cmp_current_time(end) >= 0;
}

static void check_name(struct check *check, const X509 *certificate)
{
	const struct fleet_config *config = check->fleet->config;
	char name[256] = "";

	(void)X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name,
					sizeof(name));
	if (strcmp(name, config->host) == 0)
		check_ok(check, "certificate", "is of %s", name);
	else
		check_fail(check, "certificate",
			   "Certificate=%s is of \"%s\", Host= is \"%s\": the broker goes by the "
			   "certificate's name (CN)",
			   config->broker.certificate, name, config->host);
}

static void check_chain(struct check *check, X509 *certificate)
{
	const struct fleet_broker_config *b = &check->fleet->config->broker;
	_cleanup_(X509_STORE_freep) X509_STORE *store = X509_STORE_new();
	_cleanup_(X509_STORE_CTX_freep) X509_STORE_CTX *context = X509_STORE_CTX_new();

	if (!store || !context || X509_STORE_load_file(store, b->ca) != 1 ||
	    X509_STORE_CTX_init(context, store, certificate, NULL) != 1) {
		check_fail(check, "certificate", "CA=%s: %s", b->ca, tls_error());
		return;
	}
	(void)X509_STORE_CTX_set_purpose(context, X509_PURPOSE_SSL_CLIENT);
	if (X509_verify_cert(context) == 1)
		check_ok(check, "certificate", "is signed by CA=%s", b->ca);
	else
		check_fail(check, "certificate", "Certificate=%s: %s, by CA=%s", b->certificate,
			   X509_verify_cert_error_string(X509_STORE_CTX_get_error(context)), b->ca);
	ERR_clear_error();
}

void check_certificates(struct check *check)
{
	const struct fleet_broker_config *b = &check->fleet->config->broker;
	_cleanup_(X509_freep) X509 *ca = read_certificate(check, "CA", b->ca);
	_cleanup_(X509_freep) X509 *own = read_certificate(check, "Certificate", b->certificate);
	_cleanup_(EVP_PKEY_freep) EVP_PKEY *key = read_key(check, b->key);
	bool valid = true;

	if (ca)
		valid = check_dates(check, "CA", b->ca, ca);
	if (own) {
		valid = check_dates(check, "Certificate", b->certificate, own) && valid;
		check_name(check, own);
	}
	if (own && key && X509_check_private_key(own, key) != 1)
		check_fail(check, "certificate", "Key=%s is not that of Certificate=%s", b->key,
			   b->certificate);
	ERR_clear_error();
	if (ca && own && valid)
		check_chain(check, own);
}

/* --- the broker's */

/* Return: a descriptor, or negative errno, as said */
static int connect_to(struct check *check)
{
	const struct fleet_broker_config *b = &check->fleet->config->broker;
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	const struct timeval patience = {.tv_sec = PATIENCE_SEC};
	_cleanup_free_ char *port = strf("%u", b->port);
	struct addrinfo *addresses;
	int fd = -EBADF, error = ENOENT;
	int r = getaddrinfo(b->host, port, &hints, &addresses);

	if (r != 0) {
		check_fail(check, "broker", "Host=%s: %s", b->host, gai_strerror(r));
		return -ENOENT;
	}
	for (struct addrinfo *a = addresses; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
		if (fd >= 0 &&
		    (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
		     setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
		     connect(fd, a->ai_addr, a->ai_addrlen) < 0)) {
			error = errno == EINPROGRESS ? ETIMEDOUT : errno;
			close_p(&fd);
			fd = -EBADF;
		}
	}
	freeaddrinfo(addresses);
	if (fd < 0)
		check_fail(check, "broker", "%s:%u: %s", b->host, b->port, strerror(error));
	return fd < 0 ? -error : fd;
}

static SSL *handshake(const struct fleet_broker_config *b, SSL_CTX *context, int fd)
{
	SSL *tls = SSL_new(context);
	char byte;
	X509_VERIFY_PARAM *wanted = tls ? SSL_get0_param(tls) : NULL;

	if (!tls || SSL_set_fd(tls, fd) != 1 ||
	    (X509_VERIFY_PARAM_set1_ip_asc(wanted, b->host) != 1 &&
	     SSL_set1_host(tls, b->host) != 1)) {
		SSL_free(tls);
		return NULL;
	}
	ERR_clear_error();
	(void)SSL_set_tlsext_host_name(tls, b->host);
	/* With TLS 1.3 the broker tells afterwards whether it takes ours: a ticket, of which the
	 * caller sees nothing, or an alert */
	(void)SSL_clear_mode(tls, SSL_MODE_AUTO_RETRY);
	if (SSL_connect(tls) == 1 && SSL_version(tls) >= TLS1_3_VERSION)
		(void)SSL_peek(tls, &byte, 1);
	return tls;
}

bool check_tls(struct check *check)
{
	const struct fleet_broker_config *b = &check->fleet->config->broker;
	_cleanup_(SSL_CTX_freep) SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	_cleanup_close_ int fd = connect_to(check);
	_cleanup_(SSL_freep) SSL *tls = NULL;
	long verdict;

	if (fd < 0)
		return false;
	if (!context || SSL_CTX_load_verify_file(context, b->ca) != 1 ||
	    SSL_CTX_use_certificate_chain_file(context, b->certificate) != 1 ||
	    SSL_CTX_use_PrivateKey_file(context, b->key, SSL_FILETYPE_PEM) != 1) {
		ERR_clear_error();
		return false; /* as said of the files */
	}
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	tls = handshake(b, context, fd);
	verdict = tls ? SSL_get_verify_result(tls) : X509_V_OK;
	if (tls && SSL_is_init_finished(tls) && ERR_peek_last_error() != 0 &&
	    verdict == X509_V_OK) {
		check_fail(check, "broker", "%s:%u does not take Certificate=%s: %s", b->host,
			   b->port, b->certificate, tls_error());
		return false;
	}
	if (tls && SSL_is_init_finished(tls)) {
		check_ok(check, "broker", "%s:%u has a certificate of CA=%s", b->host, b->port,
			 b->ca);
		return true;
	}
	if (verdict != X509_V_OK)
		check_fail(check, "broker", "the certificate of %s:%u: %s", b->host, b->port,
			   X509_verify_cert_error_string(verdict));
	else
		check_fail(check, "broker", "%s:%u: no TLS: %s", b->host, b->port, tls_error());
	return false;
}
