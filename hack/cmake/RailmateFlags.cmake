# The compiler's opinion, one place. RelWithDebInfo keeps asserts: they guard our own invariants.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")

add_compile_definitions(_GNU_SOURCE RAILMATE_VERSION="${PROJECT_VERSION}")
add_compile_options(-Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wwrite-strings
	-Wformat=2 -Wdate-time -Wvla -Wundef -fno-common)
add_link_options(-Wl,--as-needed)
if(RAILMATE_WERROR)
	add_compile_options(-Werror)
endif()
if(RAILMATE_SANITIZE)
	# -O1 compiles in half of -O2's time; gcc then warns of strings as too long that are not.
	add_compile_options(-O1 $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation> -fsanitize=address,undefined
		-fno-sanitize-recover=all -fno-omit-frame-pointer)
	add_link_options(-fsanitize=address,undefined)
endif()

# Without it libFuzzer sees only fuzz_<name>.c, and searches blindly.
if(RAILMATE_FUZZERS)
	add_compile_options(-fsanitize=fuzzer-no-link)
endif()
