# A toolchain: the programs for one architecture, with the headers and libraries of Debian's packages that hack/sysroot
# unpacked, not with those of this machine.
#
#   cmake --toolchain hack/cmake/sysroot.cmake -DRAILMATE_ARCH=arm64 -DRAILMATE_SYSROOT=$(hack/sysroot arm64) …
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RAILMATE_ARCH RAILMATE_SYSROOT)
set(CMAKE_SYSTEM_NAME Linux)
if(RAILMATE_ARCH STREQUAL "arm64")
	set(CMAKE_SYSTEM_PROCESSOR aarch64)
elseif(RAILMATE_ARCH STREQUAL "amd64")
	set(CMAKE_SYSTEM_PROCESSOR x86_64)
else()
	message(FATAL_ERROR "RAILMATE_ARCH is '${RAILMATE_ARCH}', not amd64 or arm64")
endif()
set(triplet ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_SYSROOT ${RAILMATE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)

# Debian's cross compiler looks into /usr/aarch64-linux-gnu before the sysroot, where an older libc may be.
set(CMAKE_C_FLAGS_INIT "-B${RAILMATE_SYSROOT}/usr/lib/${triplet} -isystem ${RAILMATE_SYSROOT}/usr/include/${triplet} -isystem ${RAILMATE_SYSROOT}/usr/include")

# What it links into programs, libgcc, is of the packages, too.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-B${RAILMATE_SYSROOT}/usr/lib/gcc/${triplet}/12")

set(ENV{PKG_CONFIG_LIBDIR} ${RAILMATE_SYSROOT}/usr/lib/${triplet}/pkgconfig:${RAILMATE_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${RAILMATE_SYSROOT})

cmake_host_system_information(RESULT host QUERY OS_PLATFORM)
if(NOT host STREQUAL CMAKE_SYSTEM_PROCESSOR)
	find_program(RAILMATE_QEMU qemu-${CMAKE_SYSTEM_PROCESSOR})
	set(CMAKE_CROSSCOMPILING_EMULATOR ${RAILMATE_QEMU} -L ${RAILMATE_SYSROOT})
	# Programs sign their return addresses (-mbranch-protection), which is four fifths of the time with the algorithm that
	# qemu has for it unless told otherwise.
	if(RAILMATE_ARCH STREQUAL "arm64")
		list(APPEND CMAKE_CROSSCOMPILING_EMULATOR -cpu max,pauth-impdef=on)
	endif()
endif()
