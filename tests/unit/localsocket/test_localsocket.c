/* The daemon's socket, with a backend of the test's own: the loop runs here, the clients in a
 * thread. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "localsocket/localsocket.h"
#include "rpc/rpc.h"

#define PATIENCE_MS 20000
#define NOBODY	    65534
/* More than the buffers of a socket take (212,992 bytes), and not more: an emulated machine writes
 * 1 MB of JSON in a second, and who asks behind four such answers waits for them. */
#define LEDGER_LINE  "{\"ledger\": \"text\"}\n"
#define LEDGER_LINES 12000

struct room {
	char dir[40], path[64];
	uv_loop_t loop;
	uv_async_t over;
	struct rpc *rpc;
	struct localsocket *control;
	void (*act)(struct room *room); /* in the thread of the clients */
	/* The backend. */
	struct err refusal;
	bool silent; /* bind is not answered before the next one is asked for */
	localsocket_done_fn waiting;
	void *waiting_arg;
	struct control_request seen;
	char seen_text[4][64];
};

static char *keep(char *to, const char *text)
{
	snprintf(to, 64, "%s", text);
	return to;
}

static void answer_bind(struct room *room, localsocket_done_fn done, void *arg)
{
	static const struct control_bound bound[] = {
		{ "slot-1", "rdma/vf", "0000:18:00.1", "mlx5_4", "0000:18:00.0", 3, 1, NULL },
		{ "slot-2", "rdma/vf", "0000:40:00.1", NULL, NULL, -1, -1, NULL }
	};
	const struct control_reply reply = { .bound = bound, .n_bound = ARRAY_LEN(bound) };

	done(arg, &reply, room->refusal.code ? &room->refusal : NULL);
}

static void bind_slot(struct room *room, const struct control_request *r, localsocket_done_fn done,
		      void *arg)
{
	room->seen = (struct control_request) { r->op,
						keep(room->seen_text[0], r->slot),
						keep(room->seen_text[1], r->ns),
						keep(room->seen_text[2], r->pod),
						keep(room->seen_text[3], r->uid),
						NULL };
	if (room->waiting) {
		answer_bind(room, room->waiting, room->waiting_arg);
		room->waiting = NULL;
	}
	if (room->silent) {
		room->waiting = done;
		room->waiting_arg = arg;
		room->silent = false;
		return;
	}
	answer_bind(room, done, arg);
}

static void backend_answer(void *ctx, const struct control_request *r, struct arena *a,
			   localsocket_done_fn done, void *arg)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct control_reply reply = { 0 };
	struct room *room = ctx;
	struct err err = { 0 };

	if (r->op == CONTROL_BIND) {
		bind_slot(room, r, done, arg);
		return;
	}
	if (r->op == CONTROL_LEDGER)
		err = room->refusal;
	for (int i = 0; r->op == CONTROL_LEDGER && i < LEDGER_LINES; i++)
		strbuf_puts(&text, LEDGER_LINE);
	if (r->op == CONTROL_LEDGER)
		reply.ledger = strbuf_str(&text);
	if (r->op == CONTROL_POOLS)
		reply.pools = "{}";
	if (r->op == CONTROL_RELEASE && strcmp(r->vf, "0000:18:00.1") != 0)
		err_set(&err, ENOENT, "VF %s: no container holds it", r->vf);
	if (r->op == CONTROL_WHOSE && strcmp(r->pod, "trainer") != 0)
		err_set(&err, EPERM, "VF %s is another pod's", r->vf);
	done(arg, &reply, err.code ? &err : NULL);
}

static void on_over(uv_async_t *over)
{
	struct room *room = over->data;

	uv_stop(&room->loop);
}

static void *clients(void *arg)
{
	struct room *room = arg;

	room->act(room);
	uv_async_send(&room->over);
	return NULL;
}

static void open_control(struct room *room)
{
	const struct localsocket_backend backend = { room, backend_answer };

	room->control = localsocket_open(&room->loop, room->path, room->rpc, &backend);
}

static void open_room(struct room *room)
{
	memset(room, 0, sizeof(*room));
	strcpy(room->dir, "/tmp/railmate-control-XXXXXX");
	assert_non_null(mkdtemp(room->dir));
	snprintf(room->path, sizeof(room->path), "%s/run/s", room->dir);
	assert_int_equal(rpc_start(&room->rpc, NULL), 0);
	assert_int_equal(uv_loop_init(&room->loop), 0);
	uv_async_init(&room->loop, &room->over, on_over);
	room->over.data = room;
}

static void close_any(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void close_room(struct room *room)
{
	char run[56];

	rpc_stop(room->rpc);
	localsocket_close(room->control);
	uv_walk(&room->loop, close_any, NULL);
	uv_run(&room->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&room->loop), 0);
	localsocket_free(room->control);
	snprintf(run, sizeof(run), "%s/run", room->dir);
	unlink(room->path);
	rmdir(run);
	assert_int_equal(rmdir(room->dir), 0);
}

/* Lets the clients act while the loop runs. */
static void run(struct room *room, void (*act)(struct room *room))
{
	pthread_t thread;

	room->act = act;
	assert_int_equal(pthread_create(&thread, NULL, clients, room), 0);
	uv_run(&room->loop, UV_RUN_DEFAULT);
	pthread_join(thread, NULL);
}

static void with_control(void (*prepare)(struct room *room), void (*act)(struct room *room))
{
	struct room room;

	open_room(&room);
	open_control(&room);
	if (prepare)
		prepare(&room);
	run(&room, act);
	close_room(&room);
}

/* --- in the thread of the clients; a failed assertion there ends the program, which is a failure
 * too --- */

#define must(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static int ask(struct room *room, enum control_op op, struct arena *a, struct control_reply *ret,
	       struct err *err)
{
	const struct control_request request = { op,	    "slot-1", "team",
						 "trainer", "u-1",    "0000:18:00.1" };

	return control_ask(room->path, &request, PATIENCE_MS, a, ret, err);
}

static int plain_connect(const struct room *room)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, room->path);
	must(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

static void must_serve(struct room *room)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct control_reply reply;

	must(ask(room, CONTROL_STATUS, a, &reply, NULL) == 0);
}

/* The whole answer to bytes that no well-meaning client sends. */
static void say(struct room *room, const char *text, size_t len, char *answer, size_t size)
{
	int fd = plain_connect(room);
	size_t have = 0;
	ssize_t n;

	send(fd, text, len, MSG_NOSIGNAL);
	while (have < size - 1 && (n = recv(fd, answer + have, size - 1 - have, 0)) > 0)
		have += (size_t)n;
	answer[have] = '\0';
	close(fd);
}

static void ask_everything(struct room *room)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct control_reply reply;

	must(ask(room, CONTROL_STATUS, a, &reply, NULL) == 0);
	must(!reply.bound && !reply.ledger);
	must(ask(room, CONTROL_LEDGER, a, &reply, NULL) == 0);
	must(strlen(reply.ledger) == LEDGER_LINES * strlen(LEDGER_LINE));
	must(ask(room, CONTROL_POOLS, a, &reply, NULL) == 0);
	must(reply.pools && !strcmp(reply.pools, "{}"));
	must(ask(room, CONTROL_RELEASE, a, &reply, NULL) == 0);
	must(ask(room, CONTROL_WHOSE, a, &reply, NULL) == 0);
	must(ask(room, CONTROL_BIND, a, &reply, NULL) == 0);
	must(reply.n_bound == 2 && str_eq(reply.bound[1].vf, "0000:40:00.1"));
	must(str_eq(reply.bound[0].rdma, "mlx5_4") && !reply.bound[1].rdma);
	must(str_eq(reply.bound[0].pf, "0000:18:00.0") && !reply.bound[1].pf);
	must(reply.bound[0].rail == 3 && reply.bound[0].plane == 1);
	must(reply.bound[1].rail == -1 && reply.bound[1].plane == -1);
	must(str_eq(room->seen.slot, "slot-1") && str_eq(room->seen.ns, "team"));
	must(str_eq(room->seen.pod, "trainer") && str_eq(room->seen.uid, "u-1"));
}

static void every_request_is_answered(void **state)
{
	(void)state;
	with_control(NULL, ask_everything);
}

static void refuse_all(struct room *room)
{
	err_set(&room->refusal, EBUSY, "0000:18:00.1 is still open in another container");
}

static void hear_refusals(struct room *room)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct control_reply reply;
	struct err err = { 0 };

	must(ask(room, CONTROL_BIND, a, &reply, &err) == -EBUSY);
	must(str_eq(err.msg, room->refusal.msg));
	must(ask(room, CONTROL_LEDGER, a, &reply, &err) == -EBUSY);
}

static void a_refusal_goes_to_the_client_with_its_sentence(void **state)
{
	(void)state;
	with_control(refuse_all, hear_refusals);
}

static void talk_nonsense(struct room *room)
{
	char flood[CONTROL_REQUEST_MAX + 1000], answer[4096];

	say(room, "GET / HTTP/1.1\r\n\r\n", 18, answer, sizeof(answer));
	must(strstr(answer, "\"EINVAL\""));
	say(room, "{\"op\": \"dance\"}\n", 16, answer, sizeof(answer));
	must(strstr(answer, "\"ENOSYS\"") && strstr(answer, "dance"));
	say(room, "\n", 1, answer, sizeof(answer));
	must(strstr(answer, "\"EINVAL\""));
	memset(flood, 'x', sizeof(flood));
	say(room, flood, sizeof(flood), answer, sizeof(answer));
	must(strstr(answer, "\"EMSGSIZE\""));
	must_serve(room);
}

static void nonsense_is_answered_with_a_sentence(void **state)
{
	(void)state;
	with_control(NULL, talk_nonsense);
}

static void be_silent(struct room *room)
{
	int fds[31];

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = plain_connect(room);
	must_serve(room);
	must_serve(room);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
}

static void silent_clients_hold_up_nobody(void **state)
{
	(void)state;
	with_control(NULL, be_silent);
}

static void crowd(struct room *room)
{
	int fds[64];

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = plain_connect(room);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
	must_serve(room);
}

static void more_clients_than_there_are_places_wait_for_their_turn(void **state)
{
	(void)state;
	with_control(NULL, crowd);
}

static void leave_early(struct room *room)
{
	const char *request = "{\"op\": \"ledger\"}\n";

	for (int i = 0; i < 12; i++) {
		int fd = plain_connect(room);

		must(send(fd, request, strlen(request) - (size_t)i % 3, MSG_NOSIGNAL) > 0);
		close(fd);
	}
	must_serve(room);
}

static void clients_that_go_away_harm_nobody(void **state)
{
	(void)state;
	with_control(NULL, leave_early);
}

static void keep_waiting(struct room *room)
{
	room->silent = true;
}

static void overtake(struct room *room)
{
	const char *request = "{\"op\": \"bind\", \"slot\": \"slot-1\"}\n";
	_cleanup_arena_ struct arena *a = arena_new(0);
	int slow = plain_connect(room);
	struct control_reply reply;
	char answer[4096];

	must(send(slow, request, strlen(request), 0) > 0);
	must_serve(room);
	must(ask(room, CONTROL_LEDGER, a, &reply, NULL) == 0);
	must(ask(room, CONTROL_BIND, a, &reply, NULL) == 0); /* lets the other one go */
	must(recv(slow, answer, sizeof(answer), 0) > 0);
	must(strstr(answer, "0000:40:00.1"));
	close(slow);
}

static void a_binding_that_takes_long_holds_up_nobody(void **state)
{
	(void)state;
	with_control(keep_waiting, overtake);
}

static void ask_for_too_long(struct room *room)
{
	const char *request = "{\"op\": \"bind\", \"slot\": \"slot-1\"}\n";
	int fd = plain_connect(room);

	must(send(fd, request, strlen(request), 0) > 0);
	must_serve(room);
	close(fd);
}

static void a_daemon_that_ends_owes_no_answer(void **state)
{
	(void)state;
	with_control(keep_waiting, ask_for_too_long);
}

static void be_nobody(struct room *room)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct control_reply reply;
	struct err err = { 0 };
	struct stat st;

	must(stat(room->path, &st) == 0 && (st.st_mode & 0777) == 0600);
	must(chmod(room->path, 0666) == 0 && chmod(room->dir, 0755) == 0);
	/* The system call, not the function: of this thread only. */
	must(syscall(SYS_setresuid, NOBODY, NOBODY, 0) == 0);
	must(ask(room, CONTROL_STATUS, a, &reply, &err) == -EACCES);
	must(strstr(err.msg, "only root"));
	must(syscall(SYS_setresuid, 0, 0, 0) == 0);
	must_serve(room);
}

static void only_root_may_ask_whatever_the_mode_says(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	with_control(NULL, be_nobody);
}

static void a_stale_socket_is_replaced(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct room room;
	char run_dir[56];

	(void)state;
	open_room(&room);
	snprintf(run_dir, sizeof(run_dir), "%s/run", room.dir);
	assert_int_equal(mkdir(run_dir, 0755), 0);
	strcpy(address.sun_path, room.path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	open_control(&room);
	run(&room, must_serve);
	close_room(&room);
}

static void wait_for_a_new_one(struct room *room)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct control_reply reply;

	must(unlink(room->path) == 0);
	while (ask(room, CONTROL_STATUS, a, &reply, NULL) < 0)
		usleep(10000);
}

static void a_socket_that_somebody_removed_is_made_again(void **state)
{
	(void)state;
	with_control(NULL, wait_for_a_new_one);
}

static void the_new_daemon_takes_the_place_when_the_old_one_has_left(void **state)
{
	struct room old, new;

	(void)state;
	open_room(&old);
	open_control(&old);
	open_room(&new);
	assert_int_equal(rmdir(new.dir), 0);
	strcpy(new.path, old.path);
	open_control(&new); /* the place is taken */
	run(&old, must_serve);
	assert_int_equal(mkdir(new.dir, 0700), 0);
	rpc_stop(old.rpc);
	localsocket_close(old.control);
	uv_walk(&old.loop, close_any, NULL);
	uv_run(&old.loop, UV_RUN_DEFAULT);
	uv_loop_close(&old.loop);
	localsocket_free(old.control);
	assert_int_equal(access(new.path, F_OK), -1);
	while (access(new.path, F_OK) < 0)
		uv_run(&new.loop, UV_RUN_ONCE);
	run(&new, must_serve);
	close_room(&new);
	assert_int_equal(access(old.path, F_OK), -1);
	strrchr(old.path, '/')[0] = '\0';
	rmdir(old.path);
	assert_int_equal(rmdir(old.dir), 0);
}

static char said[512];

static void hear_log(void *arg, enum log_level level, const char *line)
{
	(void)arg;
	if (level <= LOG_LEVEL_WARN)
		snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s\n", line);
}

static void a_place_that_cannot_be_had_is_said_once(void **state)
{
	char run_dir[56];
	struct room room;
	FILE *file;

	(void)state;
	open_room(&room);
	snprintf(run_dir, sizeof(run_dir), "%s/run", room.dir);
	file = fopen(run_dir, "w"); /* where the directory should be */
	assert_non_null(file);
	fclose(file);
	said[0] = '\0';
	log_setup(LOG_LEVEL_WARN, hear_log, NULL);
	open_control(&room);
	for (int i = 0; i < 2; i++)
		uv_run(&room.loop, UV_RUN_ONCE);
	log_setup(LOG_LEVEL_WARN, NULL, NULL);
	unlink(run_dir);
	close_room(&room);
	assert_non_null(strstr(said, "railmatectl explain and railmate-cni cannot ask"));
	assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_request_is_answered),
		cmocka_unit_test(a_refusal_goes_to_the_client_with_its_sentence),
		cmocka_unit_test(nonsense_is_answered_with_a_sentence),
		cmocka_unit_test(silent_clients_hold_up_nobody),
		cmocka_unit_test(more_clients_than_there_are_places_wait_for_their_turn),
		cmocka_unit_test(clients_that_go_away_harm_nobody),
		cmocka_unit_test(a_binding_that_takes_long_holds_up_nobody),
		cmocka_unit_test(a_daemon_that_ends_owes_no_answer),
		cmocka_unit_test(only_root_may_ask_whatever_the_mode_says),
		cmocka_unit_test(a_stale_socket_is_replaced),
		cmocka_unit_test(a_socket_that_somebody_removed_is_made_again),
		cmocka_unit_test(the_new_daemon_takes_the_place_when_the_old_one_has_left),
		cmocka_unit_test(a_place_that_cannot_be_had_is_said_once),
	};

	log_setup(LOG_LEVEL_ERROR, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
