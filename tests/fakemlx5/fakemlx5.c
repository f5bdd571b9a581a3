/*
 * libibverbs and libmlx5 in one, as far as cmd/railmatectl/facts/direct.c asks them: the real ones
 * answer only on a node with a ConnectX-8. What they say stands in FAKE_MLX5, a device a word:
 *
 *   mlx5_0=/devices/…/0009:03:00.0   its data direct function
 *   mlx5_1=none  mlx5_2=closed  mlx5_3=broken
 *
 * With FAKE_OLD it is a library from before MLX5_1.25.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 16

struct ibv_device {
	char name[64], answer[256];
};

struct ibv_context {
	struct ibv_device *device;
	int open;
};

struct ibv_device **ibv_get_device_list(int *n);
void ibv_free_device_list(struct ibv_device **list);
const char *ibv_get_device_name(struct ibv_device *device);
struct ibv_context *ibv_open_device(struct ibv_device *device);
int ibv_close_device(struct ibv_context *context);
int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *context, char *buf, size_t size);

struct ibv_device **ibv_get_device_list(int *n)
{
	struct ibv_device **list = calloc(DEVICES_MAX + 1, sizeof(*list));
	const char *word = getenv("FAKE_MLX5");

	if (!list)
		abort();
	for (*n = 0; word && *word && *n < DEVICES_MAX; (*n)++) {
		struct ibv_device *d = list[*n] = calloc(1, sizeof(*d));

		if (!d || sscanf(word, "%63[^=]=%255s", d->name, d->answer) != 2)
			abort();
		word += strcspn(word, " ");
		word += strspn(word, " ");
	}
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	for (size_t i = 0; list[i]; i++)
		free(list[i]);
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context;

	if (!strcmp(device->answer, "closed")) {
		errno = EACCES;
		return NULL;
	}
	context = calloc(1, sizeof(*context));
	if (!context)
		abort();
	*context = (struct ibv_context) { device, 1 };
	return context;
}

int ibv_close_device(struct ibv_context *context)
{
	free(context);
	return 0;
}

#ifndef FAKE_OLD
int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *context, char *buf, size_t size)
{
	const char *answer = context->device->answer;

	if (!strcmp(answer, "none"))
		return ENODEV;
	if (!strcmp(answer, "broken"))
		return EIO;
	if (strlen(answer) >= size)
		return ENOSPC;
	strcpy(buf, answer);
	return 0;
}
#endif
