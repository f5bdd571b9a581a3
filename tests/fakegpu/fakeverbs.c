/* A libibverbs whose providers are of another kernel, in the words of rdma-core's
 * libibverbs/init.c. */
#include <stddef.h>
#include <stdio.h>

struct ibv_device;
struct ibv_context;

/* As text in the file, as rdma-core's have it. */
const char *const fake_places[] = { "/nowhere/lib%s-rdmav34.so", "/etc/libibverbs.d" };

struct ibv_device **ibv_get_device_list(int *n);
void ibv_free_device_list(struct ibv_device **list);
const char *ibv_get_device_name(struct ibv_device *device);
struct ibv_context *ibv_open_device(struct ibv_device *device);
int ibv_close_device(struct ibv_context *context);
int ibv_query_port(struct ibv_context *context, unsigned char port, void *attr);

struct ibv_device **ibv_get_device_list(int *n)
{
	static struct ibv_device *none[1];

	for (int i = 3999; i < 4002; i++)
		fprintf(stderr,
			"libibverbs: Warning: Driver mlx5 does not support the kernel ABI of 8 "
			"(supports 1 to 1) for device /sys/class/infiniband/mlx5_%d\n",
			i);
	if (n)
		*n = 0;
	return none;
}

void ibv_free_device_list(struct ibv_device **list)
{
	(void)list;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	(void)device;
	return NULL;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	(void)device;
	return NULL;
}

int ibv_close_device(struct ibv_context *context)
{
	(void)context;
	return 0;
}

int ibv_query_port(struct ibv_context *context, unsigned char port, void *attr)
{
	(void)context;
	(void)port;
	(void)attr;
	return -1;
}
