/*
 * One request at a time over HTTPS, on a thread of its own, and libcurl, which is loaded for it.
 * specs.c and events.c begin transfers; kubemsg/apilist.h reads what comes.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/thread.h"
#include "kubeapi/transfer-internal.h"
#include "rpc/rpc.h"

#define SYMBOL(field)                                                                              \
	{                                                                                          \
		"curl_" #field, offsetof(struct libcurl, field)                                    \
	}

static const struct {
	const char *name;
	size_t at;
} symbols[] = {
	SYMBOL(global_init),	  SYMBOL(easy_init),	       SYMBOL(easy_setopt),
	SYMBOL(easy_getinfo),	  SYMBOL(easy_strerror),       SYMBOL(easy_cleanup),
	SYMBOL(slist_append),	  SYMBOL(slist_free_all),      SYMBOL(multi_init),
	SYMBOL(multi_add_handle), SYMBOL(multi_remove_handle), SYMBOL(multi_perform),
	SYMBOL(multi_poll),	  SYMBOL(multi_wakeup),	       SYMBOL(multi_info_read),
	SYMBOL(multi_cleanup),
};

int kubeapi_libcurl_load(const char *const *sonames, size_t n, struct libcurl *ret, struct err *err)
{
	struct libcurl c;
	void *library = NULL;
	size_t i;

	for (i = 0; i < n && !library; i++)
		library = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return err_set(err, ELIBACC, "libcurl cannot be loaded: %s", dlerror());
	for (size_t k = 0; k < ARRAY_LEN(symbols); k++) {
		void *p = dlsym(library, symbols[k].name);

		if (!p) {
			dlclose(library);
			return err_set(err, ELIBBAD, "%s: there is no %s in it", sonames[i - 1],
				       symbols[k].name);
		}
		memcpy((char *)&c + symbols[k].at, &p, sizeof(p));
	}
	if (c.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(err, ELIBBAD, "%s cannot be initialised", sonames[i - 1]);
	*ret = c;
	return 0;
}

int kubeapi_libcurl_get(const struct libcurl **ret, struct err *err)
{
	/* Debian's two builds that have a usable TLS library. The first one is smaller and loads
	 * faster. */
	static const char *const sonames[] = { "libcurl-gnutls.so.4", "libcurl.so.4" };
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct libcurl loaded;
	int r = 0;

	pthread_mutex_lock(&lock);
	if (!loaded.global_init)
		r = kubeapi_libcurl_load(sonames, ARRAY_LEN(sonames), &loaded, err);
	pthread_mutex_unlock(&lock);
	if (r == 0)
		*ret = &loaded;
	return r;
}

#define STACK_BYTES	(512 * 1024)
#define TOKEN_BYTES_MAX 65536
/* The text of a refusal: so much is kept, and shown. */
#define REFUSAL_BYTES_MAX 16384
#define REFUSAL_SHOWN_MAX 200
/* An answer of this size leaves holes in the heap that are worth giving back. */
#define LARGE_BYTES (1u << 20)

struct transfer {
	const struct libcurl *curl;
	enum transfer_kind kind;
	char *token_file, *ca_file;
	char *method, *url, *accept, *type, *body; /* as in struct transfer_request */
	struct rpc *rpc;			   /* NULL: done runs on our thread */
	transfer_done_fn done;
	void *arg;
	struct answer *ready; /* for done, while posted */
	atomic_bool posted;
	bool closed;

	pthread_t thread;
	atomic_bool ordered, cancelled, quit;
	CURLM *multi;
	CURL *easy;
	char curl_error[CURL_ERROR_SIZE];

	/* of the one under way */
	struct curl_slist *headers;
	struct answer *answer;
	struct api_list list;
	struct strbuf refusal;
	size_t received;
};

void kubeapi_answer_free(struct answer *a)
{
	if (!a)
		return;
	kubemsg_podspec_done(&a->pods);
	strbuf_done(&a->body);
	arena_free(a->arena);
	free(a);
}

/* --- the request --- */

static int read_token(const char *path, char *out, size_t size, struct err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return err_sys(err, "open the token %s", path);
	while ((n = read(fd, out + len, size - len)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "read the token %s", path);
		len += (size_t)n;
		if (len == size)
			return err_set(err, EFBIG, "the token %s is larger than %zu bytes", path,
				       size);
	}
	out[len] = '\0';
	if (strlen(out) != len)
		return err_set(err, EINVAL, "the token %s holds a NUL character", path);
	return 0;
}

static int add_header(struct transfer *t, const char *name, const char *value)
{
	_cleanup_free_ char *line = xasprintf("%s:%s%s", name, *value ? " " : "", value);
	struct curl_slist *list = t->curl->slist_append(t->headers, line);

	if (!list)
		abort(); /* out of memory */
	t->headers = list;
	return 0;
}

static int make_headers(struct transfer *t, struct err *err)
{
	_cleanup_free_ char *text = NULL, *bearer = NULL;
	char *token;
	bool ok;
	int r;

	add_header(t, "Accept", t->accept ? t->accept : API_LIST_TYPE);
	if (t->body) {
		add_header(t, "Content-Type", t->type);
		add_header(t, "Expect", ""); /* no 100 Continue is waited for */
	}
	if (!t->token_file)
		return 0;
	text = xcalloc(1, TOKEN_BYTES_MAX + 1);
	r = read_token(t->token_file, text, TOKEN_BYTES_MAX, err);
	if (r < 0)
		return r;
	token = str_trim(text);
	ok = *token;
	for (const char *p = token; *p; p++)
		ok &= *p > ' ' && *p <= '~'; /* nothing in it may end the header */
	if (!ok)
		return err_set(err, EINVAL, "%s holds no token", t->token_file);
	bearer = xasprintf("Bearer %s", token);
	return add_header(t, "Authorization", bearer);
}

/* --- the reply --- */

static long http_status(struct transfer *t)
{
	long status = 0;

	t->curl->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static bool is_taken(const struct transfer *t, long status)
{
	return status == 200 || (t->kind == TRANSFER_OBJECTS && status == 201);
}

static int take(struct transfer *t, const char *data, size_t n, struct err *err)
{
	if (t->kind == TRANSFER_PODS)
		return kubemsg_list_push(&t->list, data, n, err);
	if (t->received > TRANSFER_BODY_MAX)
		return err_set(err, EFBIG, "takes more than %zu MiB", TRANSFER_BODY_MAX >> 20);
	strbuf_add(&t->answer->body, data, n);
	return 0;
}

/* A return value other than n makes libcurl drop the connection. */
static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;

	n *= size;
	if (atomic_load(&t->cancelled))
		return CURL_WRITEFUNC_ERROR;
	t->received += n;
	if (is_taken(t, http_status(t)))
		return take(t, data, n, &t->answer->err) == 0 ? n : CURL_WRITEFUNC_ERROR;
	if (t->refusal.len < REFUSAL_BYTES_MAX)
		strbuf_add(&t->refusal, data,
			   n < REFUSAL_BYTES_MAX - t->refusal.len
				   ? n
				   : REFUSAL_BYTES_MAX - t->refusal.len);
	return t->received < LARGE_BYTES ? n : CURL_WRITEFUNC_ERROR;
}

/* The API server puts its sentence into a message, others send it plainly. */
static const char *refusal_sentence(const struct strbuf *body, struct arena *a)
{
	const char *message =
		kubemsg_refusal((struct bytes) { (const uint8_t *)strbuf_str(body), body->len }, a);
	char *out =
		arena_printf(a, "%.*s", REFUSAL_SHOWN_MAX, message ? message : strbuf_str(body));

	str_utf8_trim(out);
	for (char *p = out; (p = strchr(p, '\n'));)
		*p = ' ';
	str_printable(out, strlen(out), "");
	return str_trim(out);
}

static int refused(struct transfer *t, long status, struct err *err)
{
	const struct {
		long status;
		const char *meaning;
	} meanings[] = {
		{ 401, "does not accept our token" },
		{ 403, strcmp(t->method, "GET") ? "does not allow us to write this"
						: "does not allow us to read this" },
		{ 404, "knows nothing of that name" },
		{ 429, "has too much to do" },
	};
	const char *meaning = "refuses", *said;

	for (size_t i = 0; i < ARRAY_LEN(meanings); i++) {
		if (meanings[i].status == status)
			meaning = meanings[i].meaning;
	}
	said = refusal_sentence(&t->refusal, t->answer->arena);
	return err_set(err, EACCES, "%s: the server %s: HTTP %ld%s%s", t->url, meaning, status,
		       *said ? ", " : "", said);
}

/* The error, the innermost cause first: we stopped it, we refuse its text, it refuses us, libcurl
 * failed. */
static int conclude(struct transfer *t, CURLcode code, struct err *err)
{
	long status = t->answer->status = http_status(t), os_error = 0;

	if (atomic_load(&t->cancelled))
		return err_set(err, ECANCELED, "%s: given up", t->url);
	if (err->code)
		return err_wrap(err, "%s: the answer", t->url);
	if (status && !is_taken(t, status))
		return refused(t, status, err);
	/* libcurl's own sentence leaves out the reason of these two. */
	t->curl->easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os_error);
	if (code == CURLE_COULDNT_CONNECT && os_error)
		return err_set(err, EIO, "%s: cannot connect: %s", t->url, strerror((int)os_error));
	if (code == CURLE_SSL_CACERT_BADFILE)
		return err_set(err, EIO, "%s: cannot read certificates from %s", t->url,
			       t->ca_file);
	if (code != CURLE_OK)
		return err_set(err, EIO, "%s: %s", t->url,
			       *t->curl_error ? t->curl_error : t->curl->easy_strerror(code));
	if (t->kind == TRANSFER_PODS && kubemsg_list_end(&t->list, err) < 0)
		return err_wrap(err, "%s: the answer", t->url);
	return 0;
}

/* --- the thread --- */

static void get(struct transfer *t, const char *url, struct err *err)
{
	const struct libcurl *c = t->curl;
	CURLcode code = CURLE_ABORTED_BY_CALLBACK;
	int running = 1, left;
	CURLMsg *m;

	t->curl_error[0] = '\0';
	c->easy_setopt(t->easy, CURLOPT_URL, url);
	c->easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
	c->easy_setopt(t->easy, CURLOPT_HTTPGET, 1L);
	if (t->body)
		c->easy_setopt(t->easy, CURLOPT_POSTFIELDS, t->body);
	c->easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, t->method);
	if (c->multi_add_handle(t->multi, t->easy) != CURLM_OK)
		abort(); /* out of memory */
	while (c->multi_perform(t->multi, &running) == CURLM_OK && running &&
	       !atomic_load(&t->cancelled))
		c->multi_poll(t->multi, NULL, 0, INT_MAX, NULL);
	while ((m = c->multi_info_read(t->multi, &left))) {
		if (m->msg == CURLMSG_DONE)
			code = m->data.result;
	}
	conclude(t, code, err);
	c->multi_remove_handle(t->multi, t->easy);
}

/* Of a list that is not complete: where the rest of it is. Heap; NULL: the list is complete. */
static int next_page(const struct transfer *t, char **ret, struct err *err)
{
	const char *token = t->list.more;

	if (!token)
		return 0;
	for (const char *p = token; *p; p++) {
		if (!isalnum((unsigned char)*p) && !strchr("-_=", *p))
			return err_set(err, EBADMSG, "%s: the answer's continue is not base64url",
				       t->url);
	}
	*ret = xasprintf("%s&continue=%s", t->url, token);
	return 0;
}

/* Page by page. */
static void get_all(struct transfer *t, struct answer *a)
{
	_cleanup_free_ char *url = xstrdup(t->url), *next = NULL;

	if (make_headers(t, &a->err) < 0)
		return;
	do {
		kubemsg_list_begin(&t->list, kubemsg_list_pod, &a->pods);
		get(t, url, &a->err);
		if (!a->err.code)
			next_page(t, &next, &a->err);
		kubemsg_list_done(&t->list);
		free(url);
		url = STEAL(next);
	} while (url);
}

static struct answer *transfer_run(struct transfer *t)
{
	struct answer *a = t->answer = xcalloc(1, sizeof(*a));

	a->arena = arena_new(8192);
	a->pods.arena = a->arena;
	t->received = 0;
	get_all(t, a);
	t->curl->slist_free_all(STEAL(t->headers));
	strbuf_done(&t->refusal);
	if (t->received >= LARGE_BYTES)
		malloc_trim(0);
	return STEAL(t->answer);
}

static void forget(struct transfer *t)
{
	free(STEAL(t->method));
	free(STEAL(t->url));
	free(STEAL(t->accept));
	free(STEAL(t->type));
	free(STEAL(t->body));
}

static void transfer_free(struct transfer *t)
{
	if (t->easy)
		t->curl->easy_cleanup(t->easy);
	if (t->multi)
		t->curl->multi_cleanup(t->multi);
	forget(t);
	free(t->token_file);
	free(t->ca_file);
	free(t);
}

static void arrived(void *arg)
{
	struct transfer *t = arg;
	struct answer *a = STEAL(t->ready);

	atomic_store(&t->posted, false);
	if (!t->closed) {
		t->done(t->arg, a);
		return;
	}
	kubeapi_answer_free(a);
	transfer_free(t);
}

static void hand_over(struct transfer *t, struct answer *a)
{
	if (!t->rpc) {
		t->done(t->arg, a);
		return;
	}
	t->ready = a;
	atomic_store(&t->posted, true);
	if (!rpc_post(t->rpc, arrived, t)) {
		kubeapi_answer_free(STEAL(t->ready));
		atomic_store(&t->posted, false);
	}
}

static void *work(void *arg)
{
	struct transfer *t = arg;

	while (!atomic_load(&t->quit)) {
		if (atomic_exchange(&t->ordered, false))
			hand_over(t, transfer_run(t));
		else
			t->curl->multi_poll(t->multi, NULL, 0, INT_MAX, NULL);
	}
	return NULL;
}

static int start_thread(struct transfer *t, struct err *err)
{
	int r = thread_start(&t->thread, "kubeapi", STACK_BYTES, work, t);

	if (r < 0)
		return err_set(err, -r, "cannot start a thread for the API server: %s",
			       strerror(-r));
	return 0;
}

/* No proxy: the token and the answer are this node's and the cluster's own affair. */
static void set_options(struct transfer *t)
{
	__typeof__(curl_easy_setopt) *set = t->curl->easy_setopt;

	set(t->easy, CURLOPT_PROTOCOLS_STR, "https");
	set(t->easy, CURLOPT_PROXY, "");
	set(t->easy, CURLOPT_NOSIGNAL, 1L);
	set(t->easy, CURLOPT_QUICK_EXIT, 1L);
	set(t->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	set(t->easy, CURLOPT_USERAGENT, "railmate/" RAILMATE_VERSION);
	set(t->easy, CURLOPT_ERRORBUFFER, t->curl_error);
	set(t->easy, CURLOPT_WRITEFUNCTION, on_body);
	set(t->easy, CURLOPT_WRITEDATA, t);
	set(t->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	set(t->easy, CURLOPT_CAPATH, NULL);	    /* not the system's certificates */
	set(t->easy, CURLOPT_CA_CACHE_TIMEOUT, 0L); /* the file may be replaced */
	set(t->easy, CURLOPT_CAINFO, t->ca_file);
	set(t->easy, CURLOPT_SSL_VERIFYPEER, 1L);
	set(t->easy, CURLOPT_SSL_VERIFYHOST, 2L);
}

/* A core file of this process, on the host's disk, could contain the token. */
static void keep_out_of_cores(void)
{
	const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0, 0, 0,
	      0); /* where cores go to a program, the limit does not count */
}

int kubeapi_transfer_open(const struct kubeapi_options *opt, enum transfer_kind kind,
			  struct rpc *rpc, transfer_done_fn done, void *arg, struct transfer **ret,
			  struct err *err)
{
	const struct libcurl *c;
	struct transfer *t;
	int r;

	r = kubeapi_libcurl_get(&c, err);
	if (r < 0)
		return r;
	t = xcalloc(1, sizeof(*t));
	if (opt->token_file)
		keep_out_of_cores();
	*t = (struct transfer) { .curl = c, .kind = kind, .rpc = rpc, .done = done, .arg = arg };
	t->token_file = opt->token_file ? xstrdup(opt->token_file) : NULL;
	t->ca_file = xstrdup(opt->ca_file);
	t->multi = c->multi_init();
	t->easy = c->easy_init();
	if (!t->multi || !t->easy)
		abort(); /* out of memory */
	set_options(t);
	r = start_thread(t, err);
	if (r < 0) {
		transfer_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

static char *copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

void kubeapi_transfer_begin(struct transfer *t, const struct transfer_request *r)
{
	forget(t);
	t->method = copy(r->method);
	t->url = copy(r->url);
	t->accept = copy(r->accept);
	t->type = copy(r->type);
	t->body = copy(r->body);
	atomic_store(&t->cancelled, false);
	atomic_store(&t->ordered, true);
	t->curl->multi_wakeup(t->multi);
}

void kubeapi_transfer_cancel(struct transfer *t)
{
	atomic_store(&t->cancelled, true);
	t->curl->multi_wakeup(t->multi);
}

void kubeapi_transfer_close(struct transfer *t)
{
	atomic_store(&t->quit, true);
	kubeapi_transfer_cancel(t);
	pthread_join(t->thread, NULL);
	t->closed = true;
	if (!atomic_load(&t->posted)) /* else arrived() does it: a posted function still runs */
		transfer_free(t);
}
