#include "rpc/rpc-internal.h"

#include <grpc/byte_buffer_reader.h>
#include <grpc/slice.h>

grpc_byte_buffer *buffer_new(struct bytes body)
{
	grpc_slice slice =
		body.len ? grpc_slice_from_copied_buffer((const char *)body.data, body.len)
			 : grpc_empty_slice();
	grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);

	grpc_slice_unref(slice);
	return buffer;
}

void buffer_free(grpc_byte_buffer **buffer)
{
	if (*buffer)
		grpc_byte_buffer_destroy(*buffer);
	*buffer = NULL;
}

bool buffer_read(grpc_byte_buffer *buffer, grpc_slice *ret_slice, struct bytes *ret)
{
	grpc_byte_buffer_reader reader;

	if (buffer->data.raw.compression != GRPC_COMPRESS_NONE ||
	    !grpc_byte_buffer_reader_init(&reader, buffer))
		return false;
	*ret_slice = grpc_byte_buffer_reader_readall(&reader);
	grpc_byte_buffer_reader_destroy(&reader);
	ret->data = GRPC_SLICE_START_PTR(*ret_slice);
	ret->len = GRPC_SLICE_LENGTH(*ret_slice);
	return true;
}
