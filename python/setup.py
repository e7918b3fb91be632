# SPDX-License-Identifier: MIT
"""Puts the built library into the wheel, and names the wheel for its platform.

scripts/python-wheel sets IRIS_C_BUNDLE to the folder of the built library.
Without it the wheel contains no library and is for any platform: it uses the
system's libiris.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel

BUNDLE = os.environ.get("IRIS_C_BUNDLE", "")
#: Modules that libtool leaves in its folder: the backend for GPUs, and those
#: for libraries of matrix products. Those for GPUs find theirs when they run.
MODULES = ("iris_hip.so", "iris_cublaslt.so", "iris_hipblaslt.so")
CBLAS = "iris_cblas.so"
#: Libraries that every Linux with a manylinux tag has.
GLIBC = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s)\.so|ld-linux|linux-vdso")
#: Libraries that the wheel contains because libiris is linked with them.
#: _lib.py loads them first.
BESIDE = re.compile(r"libz\.so")


def elf(path, option):
    """The output of readelf for a library."""
    command = ["readelf", "--wide", option, str(path)]
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, universal_newlines=True
    ).stdout


def needs(library):
    """The libraries that a library is linked with."""
    return re.findall(r"NEEDED.*\[(.*)\]", elf(library, "-d"))


def linked(library):
    """Name and path of each library that the loader finds for a library. ldd
    cannot read another machine's library."""
    if all(map(GLIBC.match, needs(library))):
        return []
    found = subprocess.run(
        ["ldd", str(library)], stdout=subprocess.PIPE, universal_newlines=True
    ).stdout
    return re.findall(r"(\S+) => (/\S+)", found)


def beside():
    """Name and path of each library that libiris needs and the wheel contains."""
    for name, path in linked(Path(BUNDLE) / "libiris.so"):
        if BESIDE.match(name):
            yield name, path


def blas():
    """The module of CBLAS and, in its folder blas, OpenBLAS with all libraries
    that it needs. None if the build has no such module."""
    module = Path(BUNDLE) / CBLAS
    if not module.exists():
        return
    found = dict(linked(module))
    missing = set(needs(module)) - set(found)
    if missing:
        print(f"without {CBLAS}: {', '.join(sorted(missing))} not found",
              file=sys.stderr)
        return
    yield CBLAS, module
    for name, path in found.items():
        if not GLIBC.match(name):
            yield f"blas/{name}", path


def licence(path):
    """The file in which a system of Debian's kind has a library's licence."""
    if shutil.which("dpkg-query") is None:
        return None
    found = subprocess.run(
        ["dpkg-query", "-S", os.path.realpath(path)],
        stdout=subprocess.PIPE, universal_newlines=True,
    ).stdout
    file = Path("/usr/share/doc", found.split(":")[0], "copyright")
    return file if file.exists() else None


def machine():
    """This platform, with the processor that the library was compiled for."""
    header = elf(Path(BUNDLE) / "libiris.so", "-h")
    plain = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return "linux_aarch64" if re.search(r"Machine: *AArch64", header) else plain


def platform():
    """The wheel's platform: the oldest glibc that has all symbols that the
    wheel's files use. If the library needs more than glibc and the wheel's
    libraries, such as MPI, it is this kind of machine only."""
    library = Path(BUNDLE) / "libiris.so"
    plain = machine()
    held = dict(beside())
    if not all(GLIBC.match(name) or name in held for name in needs(library)):
        return plain
    files = [library, *held.values(), *modules(), *dict(blas()).values()]
    symbols = [re.findall(r"GLIBC_2\.(\d+)", elf(file, "-V")) for file in files]
    minor = max(int(number) for found in symbols for number in found)
    return plain.replace("linux", f"manylinux_2_{minor}")


def modules():
    """The modules of the build. None if the build is for Iris' own tests."""
    found = [Path(BUNDLE) / name for name in MODULES]
    found = [path for path in found if path.exists()]
    return [] if any("libfakehip.so" in needs(path) for path in found) else found


class WithLibrary(build_py):
    """The package and, in its folder lib, the library."""

    def run(self):
        super().run()
        if not BUNDLE:
            return
        folder = Path(self.build_lib) / "iris_c" / "lib"
        folder.mkdir(parents=True, exist_ok=True)
        strip = os.environ.get("STRIP", "strip")
        for path in [Path(BUNDLE) / "libiris.so", *modules()]:
            shutil.copyfile(path, folder / path.name)
            subprocess.run([strip, "-g", str(folder / path.name)], check=True)
        for name, path in [*beside(), *blas()]:
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(path, folder / name)
            text = name.startswith("blas/") and licence(path)
            if text:
                shutil.copyfile(text, folder / f"{name}.copyright")


class ForPlatform(bdist_wheel):
    """A wheel for every version of Python and one platform."""

    def get_tag(self):
        return ("py3", "none", platform() if BUNDLE else "any")


class Bundle(Distribution):
    """Puts a bundled library where files of a platform go."""

    def has_ext_modules(self):
        return bool(BUNDLE)


setup(
    distclass=Bundle,
    cmdclass={"build_py": WithLibrary, "bdist_wheel": ForPlatform},
)
