"""Libraries that the image has smaller than Debian, built from Debian's source packages: HTTPS is all
that railmated asks of libcurl, HTTP all that it asks of libmicrohttpd.

Debian's speak two dozen protocols, and need other libraries for them that take 12 MB. railmated
loads both by name (pkg/kubeapi/transfer.c, pkg/report/web.c).
"""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from debian import TOP, Failed, output

# As for our programs (hack/cmake/RailmateFlags.cmake).
CFLAGS = ("-O2 -fstack-protector-strong -fstack-clash-protection -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3"
          " -ffunction-sections -fdata-sections")
BRANCHES = {"amd64": "-fcf-protection=full", "arm64": "-mbranch-protection=standard"}
LDFLAGS = "-Wl,-z,relro,-z,now,-z,noexecstack,--as-needed,--gc-sections"


def build_curl(packages, folder, cflags):
    wanted = ("HTTP_ONLY CURL_USE_OPENSSL CURL_DISABLE_OPENSSL_AUTO_LOAD_CONFIG CURL_DISABLE_ALTSVC"
              " CURL_DISABLE_COOKIES CURL_DISABLE_CRYPTO_AUTH CURL_DISABLE_DOH CURL_DISABLE_HSTS"
              " CURL_DISABLE_NETRC CURL_DISABLE_NTLM").split()
    unwanted = ("CURL_ZLIB USE_LIBIDN2 CURL_USE_LIBPSL CURL_USE_LIBSSH2 ENABLE_UNIX_SOCKETS BUILD_CURL_EXE"
                " BUILD_TESTING ENABLE_MANUAL").split()
    # A build type without flags of its own, and no certificates but those that it is told.
    run(folder, "cmake", "-S", "source", "-B", "build", "-G", "Ninja", "--toolchain",
        TOP / "hack/cmake/sysroot.cmake", f"-DRAILMATE_ARCH={packages.arch}",
        f"-DRAILMATE_SYSROOT={packages.root}", "-DCMAKE_BUILD_TYPE=None",
        f"-DCMAKE_C_FLAGS_NONE={cflags}", f"-DCMAKE_SHARED_LINKER_FLAGS={LDFLAGS}",
        "-DCURL_CA_BUNDLE=none", "-DCURL_CA_PATH=none", *(f"-D{name}=ON" for name in wanted),
        *(f"-D{name}=OFF" for name in unwanted))
    run(folder, "ninja", "-C", "build", "libcurl")
    return folder / "build/lib/libcurl.so.4"


def build_libmicrohttpd(packages, folder, cflags):
    usr = packages.root / "usr"
    # As in hack/cmake/sysroot.cmake.
    compiler = (f"{packages.tool('gcc')} --sysroot={packages.root} -B{usr}/lib/{packages.triplet}"
                f" -isystem {usr}/include/{packages.triplet} -isystem {usr}/include")
    unwanted = ("static https messages postprocessor bauth dauth httpupgrade doc examples curl").split()
    run(folder, "source/configure", f"--host={packages.triplet}", f"CC={compiler}",
        f"CFLAGS={cflags}", f"LDFLAGS={LDFLAGS}", *(f"--disable-{name}" for name in unwanted))
    run(folder, "make", f"-j{os.cpu_count()}", "-C", "src/microhttpd", "libmicrohttpd.la")
    return folder / "src/microhttpd/.libs/libmicrohttpd.so.12"


# The file, the package in which Debian has it, its source package.
LIBRARIES = (("libcurl.so.4", "libcurl4", "curl", build_curl),
             ("libmicrohttpd.so.12", "libmicrohttpd12", "libmicrohttpd", build_libmicrohttpd))


def run(folder, *argv):
    """Says something only when it fails."""
    with open(folder / "log", "w+") as log:
        done = subprocess.run([str(word) for word in argv], cwd=folder, stdin=subprocess.DEVNULL,
                              stdout=log, stderr=log, check=False)
        if done.returncode:
            log.seek(0)
            raise Failed(f"{argv[0]} exits with {done.returncode}:\n" +
                         "".join(log.readlines()[-20:]))


def stanza(packages, package, dsc):
    """What dpkg would say of it, were it installed; scanners compare Source and Version with the
    advisories."""
    said = dict(re.findall(r"^(\S+): (.*)$", dsc.read_text(), re.M))
    return (f"Package: {package}\nSource: {said['Source']}\nVersion: {said['Version']}\n"
            f"Architecture: {packages.arch}\nMaintainer: {said['Maintainer']}\n"
            f"Homepage: {said['Homepage']}\nOrigin: railmate\n"
            "Description: a part of it, built from Debian's source package\n")


def make(packages, out):
    """SONAME and PACKAGE, what dpkg would say of it, and PACKAGE.copyright, of each, in a folder."""
    for soname, package, source, build in LIBRARIES:
        (dsc,) = (packages.root / "sources").glob(source + "_*.dsc")
        with tempfile.TemporaryDirectory(prefix="railmate-" + source) as folder:
            folder = pathlib.Path(folder)
            # apt looked at its checksums.
            run(folder, "dpkg-source", "--no-check", "-x", dsc, "source")
            built = build(packages, folder, f"{CFLAGS} {BRANCHES[packages.arch]} -ffile-prefix-map={folder}=.")
            output(packages.tool("strip"), "--strip-unneeded", "-o", out / soname, built)
            shutil.copyfile(folder / "source/debian/copyright", out / (package + ".copyright"))
        (out / package).write_text(stanza(packages, package, dsc))


def libraries(packages):
    """Their folder, which make() fills once. packages: a sysroot with sources."""
    recipe = hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()
    folder = packages.root / f"libraries-{recipe[:16]}"
    if not folder.exists():
        with tempfile.TemporaryDirectory(prefix="libraries-", dir=packages.root) as made:
            made = pathlib.Path(made)
            (made / "new").mkdir()
            make(packages, made / "new")
            (made / "new").rename(folder)
    return folder
