/* Signs in a log, each with its weight, one sentence of cause and one of fix. */
#ifndef RAILMATE_VERIFY_SIGNS_INTERNAL_H
#define RAILMATE_VERIFY_SIGNS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum level { LEVEL_NOTE, LEVEL_NOGDR, LEVEL_WARN, LEVEL_UNKNOWN, LEVEL_FAIL, LEVEL_MAX };

/* In which lines the words of a sign count: bits. Loud: whatever is not an INFO of NCCL. */
enum voice {
	VOICE_NONE,
	VOICE_INFO = 1,
	VOICE_WARN = 2,
	VOICE_NCCL = 3,
	VOICE_PLAIN = 4,
	VOICE_LOUD = 6
};

#define SIGN(name, ...) SIGN_##name,
enum sign_id {
#include "verify/signs.def"
	SIGN_MAX
};
#undef SIGN

struct sign {
	const char *id;
	enum level level;
	enum voice voice;
	const char *words;
	const char *cause, *fix;
	bool follows;	  /* a consequence, where there is a cause */
	const char *what; /* NULL: the line is enough */
};

const struct sign *verify_sign_of(unsigned id);
const char *verify_level_name(enum level level);

/* Readers of lines that are not NCCL's. */
enum hint {
	HINT_HEADING = 1,
	HINT_NAME = 2,
	HINT_LINK = 4,
	HINT_END = 8,
	HINT_START = 16,
	HINT_UCX = 32,
	HINT_WELL = 64
};

/* All words as one index: a line is looked through once. */
#define MAX_PHRASES 512
#define SLOTS	    1024

struct phrases {
	uint64_t bits[1024]; /* four bytes with which some phrase begins, hashed */
	uint16_t slots[SLOTS];
	struct phrase {
		const char *text;
		uint32_t gram;
		uint16_t len, sign, next;
		uint8_t voice;
	} rows[MAX_PHRASES];
	uint16_t n;
};

void verify_phrases_fill(struct phrases *p);
/* The sign of a text, the first in the catalogue of several; SIGN_MAX: none. Which readers
 * have to look at it is added to the hints. */
unsigned verify_phrases_match(const struct phrases *p, const char *text, size_t len,
			      enum voice voice, unsigned *hints);

#endif
