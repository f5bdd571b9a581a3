# The compiler's opinion, one place. RelWithDebInfo keeps asserts: they guard our own invariants.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")

add_compile_definitions(_GNU_SOURCE RAILMATE_VERSION="${PROJECT_VERSION}")
# A callback has the parameters of its type, whether it needs them or not.
add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wwrite-strings
	-Wformat=2 -Wdate-time -Wvla -Wundef -fno-common)
add_link_options(-Wl,--as-needed)
# "FOLDER=NAME": programs name their sources, in assertions and to a debugger, and must not name folders of a machine
# where equal sources have to give equal bytes (hack/image-root).
set(RAILMATE_PATHS "" CACHE STRING "What programs call folders: FOLDER=NAME;…")
foreach(path IN LISTS RAILMATE_PATHS)
	add_compile_options(-ffile-prefix-map=${path})
endforeach()

# Hardening, whatever the distribution's compiler does by itself; tests/checks/elf.py reads what came of it.
# A flag that the compiler does not know for this processor is left out: -fcf-protection is x86's,
# -mbranch-protection is arm64's.
include(CheckCCompilerFlag)
foreach(flag IN ITEMS -fstack-protector-strong -fstack-clash-protection -fcf-protection=full
		-mbranch-protection=standard)
	string(MAKE_C_IDENTIFIER "RAILMATE_HAS${flag}" known)
	set(CMAKE_REQUIRED_FLAGS -Werror)
	check_c_compiler_flag(${flag} ${known})
	unset(CMAKE_REQUIRED_FLAGS)
	if(${known})
		add_compile_options(${flag})
	endif()
endforeach()
# Clang before 16 wants a promise beside it.
set(zero -ftrivial-auto-var-init=zero)
if(CMAKE_C_COMPILER_ID MATCHES "Clang" AND CMAKE_C_COMPILER_VERSION VERSION_LESS 16)
	list(APPEND zero -enable-trivial-auto-var-init-zero-knowing-it-will-be-removed-from-clang)
endif()
add_compile_options(${zero})
# Libraries that a test preloads stay -fPIC, and are there to be seen. A program shows nothing of its own to libraries.
set(preloaded $<STREQUAL:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY>)
add_compile_options($<$<NOT:${preloaded}>:-fPIE> $<$<NOT:${preloaded}>:-fvisibility=hidden>)
# railmate-cni is -static-pie, and clang warns of the two together.
set(static $<STREQUAL:$<TARGET_PROPERTY:NAME>,railmate-cni>)
set(program $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
add_link_options($<$<AND:${program},$<NOT:${static}>>:-pie> -Wl,-z,relro,-z,now,-z,noexecstack)
# It needs an optimiser, and hides from the sanitizers what they are there to see.
if(NOT RAILMATE_SANITIZE)
	add_compile_options($<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=3>)
endif()
if(RAILMATE_WERROR)
	add_compile_options(-Werror)
endif()
if(RAILMATE_SANITIZE)
	# -O1 compiles in half of -O2's time, but a fuzzer runs for longer than it compiles. Reports name lines, not
	# variables: -g1 saves a sixth of the time. gcc warns of strings as too long at -O1 that are not.
	set(sanitizers address,undefined)
	if(RAILMATE_SANITIZE STREQUAL thread)
		set(sanitizers thread)
	endif()
	add_compile_options($<IF:$<BOOL:${RAILMATE_FUZZERS}>,-O2,-O1> -g1
		$<$<C_COMPILER_ID:GNU>:-Wno-format-truncation> -fsanitize=${sanitizers}
		-fno-sanitize-recover=all -fno-omit-frame-pointer)
	add_link_options(-fsanitize=${sanitizers})
endif()

# Without it libFuzzer sees only fuzz_<name>.c, and searches blindly.
if(RAILMATE_FUZZERS)
	add_compile_options(-fsanitize=fuzzer-no-link)
endif()
