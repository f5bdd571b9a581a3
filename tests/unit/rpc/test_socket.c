/* The listening socket: whose it is, what is in its way, and what happens when the kubelet wipes
 * its folder.
 */
#include <sys/stat.h>

#include "peer.h"

static int file_mode(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 ? (int)st.st_mode : -errno;
}

/* A socket of somebody else; closed without being unlinked it becomes a stale one. */
static int foreign_socket(const char *path, bool listening)
{
	struct sockaddr_un address = unix_address(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	if (listening)
		assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static void assert_refused(struct peer *p, int code, const char *why)
{
	struct opening o = try_serve(p);

	assert_int_equal(o.r, -code);
	assert_int_equal(o.err.code, code);
	if (!strstr(o.err.msg, why) || !strstr(o.err.msg, p->path))
		fail_msg("unexpected sentence: %s", o.err.msg);
}

static void socket_is_for_owner_and_group_whatever_the_umask(void **state)
{
	struct peer *p = *state;
	mode_t before = umask(0);

	serve(p);
	umask(before);
	assert_int_equal(file_mode(p->path), S_IFSOCK | 0660);
}

static void stale_socket_is_replaced(void **state)
{
	struct peer *p = *state;

	close(foreign_socket(p->path, true));
	serve(p);
	rpc_run(p->rpc, open_channel, p);
	assert_echo(p, "mine now");
}

static void live_socket_of_another_is_not_stolen(void **state)
{
	struct peer *p = *state;
	int fd = foreign_socket(p->path, true);

	assert_refused(p, EADDRINUSE, "another process is listening");
	assert_int_equal(file_mode(p->path) & S_IFMT, S_IFSOCK);
	/* Two probes fill its backlog, and it is still alive. */
	assert_refused(p, EADDRINUSE, "another process is listening");
	assert_refused(p, EADDRINUSE, "another process is listening");
	close(fd);
}

static void second_server_at_the_same_path_is_refused(void **state)
{
	struct peer *p = *state;
	struct rpc_server *first;

	serve(p);
	first = p->server;
	assert_refused(p, EADDRINUSE, "another process is listening");
	p->server = first;
	rpc_run(p->rpc, open_channel, p);
	assert_echo(p, "the first still serves");
}

static void datagram_socket_in_use_is_not_stolen(void **state)
{
	struct peer *p = *state;
	struct sockaddr_un address = unix_address(p->path);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_refused(p, EADDRINUSE, "another process is listening");
	close(fd);
}

static void another_kind_of_file_in_the_way_is_kept(void **state)
{
	struct peer *p = *state;
	FILE *f = fopen(p->path, "we");

	assert_non_null(f);
	fclose(f);
	assert_refused(p, EEXIST, "is not a socket");
	assert_int_equal(file_mode(p->path) & S_IFMT, S_IFREG);
}

static void path_of_107_bytes_is_the_longest(void **state)
{
	struct peer *p = *state;
	size_t len = strlen(p->dir);
	struct opening o;

	p->path[len] = '/';
	memset(p->path + len + 1, 'x', 108 - len - 1);
	p->path[108] = '\0';
	o = try_serve(p);
	assert_int_equal(o.r, -ENAMETOOLONG);
	assert_non_null(strstr(o.err.msg, "has 108 bytes, the limit is 107"));
	p->path[107] = '\0';
	serve(p);
	rpc_run(p->rpc, open_channel, p);
	assert_echo(p, "long");
}

static void missing_folder_and_empty_path_are_errors(void **state)
{
	struct peer *p = *state;
	struct opening o;

	snprintf(p->path, sizeof(p->path), "%s/none/x.sock", p->dir);
	assert_refused(p, ENOENT, "bind");
	p->path[0] = '\0';
	o = try_serve(p);
	assert_int_equal(o.r, -EINVAL);
	assert_non_null(strstr(o.err.msg, "empty"));
}

static void close_unlinks_the_socket(void **state)
{
	struct peer *p = *state;

	serve(p);
	assert_int_equal(file_mode(p->path) & S_IFMT, S_IFSOCK);
	unserve(p);
	assert_int_equal(file_mode(p->path), -ENOENT);
}

static void close_leaves_the_socket_of_a_successor(void **state)
{
	struct peer *p = *state;
	int fd;

	serve(p);
	unlink(p->path);
	fd = foreign_socket(p->path, true);
	unserve(p);
	assert_int_equal(file_mode(p->path) & S_IFMT, S_IFSOCK);
	close(fd);
}

struct relisten {
	struct peer *p;
	char *path; /* to move to */
	int r;
	struct err err;
};

static void listen_again(void *arg)
{
	struct relisten *l = arg;

	l->r = rpc_server_relisten(l->p->server, &l->err);
}

static struct relisten relisten(struct peer *p)
{
	struct relisten l = { .p = p };

	rpc_run(p->rpc, listen_again, &l);
	return l;
}

static void fresh_channel(struct peer *p)
{
	rpc_run(p->rpc, close_channel, p);
	rpc_run(p->rpc, open_channel, p);
}

static void relisten_after_a_wipe_serves_new_clients_and_keeps_old_calls(void **state)
{
	struct peer *p = *state;
	struct answer old;

	for (int i = 0; i < 20; i++) {
		call_begin(&old, p, "/t.T/Hold", text("x"));
		wait_for(&p->event);
		unlink(p->path);
		assert_int_equal(relisten(p).r, 0);
		assert_echo(p, "over the old connection");
		assert_int_equal(old.times, 0);
		fresh_channel(p); /* cancels the old call from the client's side */
		assert_int_equal(call_end(&old), RPC_CANCELLED);
		free(old.body);
		assert_echo(p, "over a new connection");
	}
	assert_int_equal(p->n_held, 20); /* never answered: the stop frees them */
}

static void relisten_is_nothing_to_do_while_the_socket_is_intact(void **state)
{
	struct peer *p = *state;
	struct stat before, after;

	stat(p->path, &before);
	assert_int_equal(relisten(p).r, 0);
	stat(p->path, &after);
	assert_int_equal(before.st_ino, after.st_ino);
	fresh_channel(p);
	assert_echo(p, "alive");
}

static void relisten_does_not_steal_either(void **state)
{
	struct peer *p = *state;
	struct relisten l;
	int fd;

	assert_echo(p, "connected");
	unlink(p->path);
	fd = foreign_socket(p->path, true);
	l = relisten(p);
	assert_int_equal(l.r, -EADDRINUSE);
	assert_non_null(strstr(l.err.msg, p->path));
	close(fd);
	assert_echo(p, "connections from before go on");
	assert_int_equal(relisten(p).r, 0);
	fresh_channel(p);
	assert_echo(p, "and new ones come");
}

static void move_to(void *arg)
{
	struct relisten *l = arg;

	l->r = rpc_server_move(l->p->server, l->path, &l->err);
}

static void server_that_moves_keeps_its_calls_and_leaves_no_socket_behind(void **state)
{
	struct peer *p = *state;
	_cleanup_free_ char *former = xstrdup(p->path);
	struct relisten l = { .p = p, .path = xasprintf("%s.2", p->path) };
	struct answer old;

	call_begin(&old, p, "/t.T/Hold", text("x"));
	wait_for(&p->event);
	rpc_run(p->rpc, move_to, &l);
	assert_int_equal(l.r, 0);
	assert_int_equal(access(former, F_OK), -1);
	assert_echo(p, "over the old connection");
	assert_int_equal(old.times, 0);
	snprintf(p->path, sizeof(p->path), "%s", l.path);
	free(l.path);
	fresh_channel(p);
	assert_int_equal(call_end(&old), RPC_CANCELLED);
	free(old.body);
	assert_echo(p, "over a new connection");
}

static void server_that_cannot_move_stays(void **state)
{
	struct peer *p = *state;
	struct relisten l = { .p = p, .path = (char *)"/nowhere/at/all.sock" };

	rpc_run(p->rpc, move_to, &l);
	assert_int_equal(l.r, -ENOENT);
	fresh_channel(p);
	assert_echo(p, "alive");
}

#define ALONE(test)  cmocka_unit_test_setup_teardown(test, peer_setup, peer_teardown)
#define SERVED(test) cmocka_unit_test_setup_teardown(test, peer_setup_serving, peer_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALONE(socket_is_for_owner_and_group_whatever_the_umask),
		ALONE(stale_socket_is_replaced),
		ALONE(live_socket_of_another_is_not_stolen),
		ALONE(second_server_at_the_same_path_is_refused),
		ALONE(datagram_socket_in_use_is_not_stolen),
		ALONE(another_kind_of_file_in_the_way_is_kept),
		ALONE(path_of_107_bytes_is_the_longest),
		ALONE(missing_folder_and_empty_path_are_errors),
		ALONE(close_unlinks_the_socket),
		ALONE(close_leaves_the_socket_of_a_successor),
		SERVED(relisten_after_a_wipe_serves_new_clients_and_keeps_old_calls),
		SERVED(relisten_is_nothing_to_do_while_the_socket_is_intact),
		SERVED(relisten_does_not_steal_either),
		SERVED(server_that_moves_keeps_its_calls_and_leaves_no_socket_behind),
		SERVED(server_that_cannot_move_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
