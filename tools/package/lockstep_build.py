"""Builds the Python package for pip (PEP 517): CMake compiles and stages it, this packs it.

A wheel holds the module, its stubs, and the presets, scenarios and reference data. LOCKSTEP_CMAKE
in the environment adds words to CMake's command line. Objects stay in build-wheel/ for next time.
"""

import base64
import gzip
import hashlib
import io
import os
import pathlib
import re
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build-wheel"
# What tools/setup makes of npm's packages: pages need it, and an sdist cannot make it without npm.
CHARTS = ["charts.min.js", "licences.txt"]
STAMP = (1980, 1, 1, 0, 0, 0)  # the same bytes at any time of day


def project():
    with open(ROOT / "pyproject.toml", "rb") as file:
        return tomllib.load(file)["project"]


def version():
    """CMakeLists.txt says it, once for everything."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"^project\(lockstep\s+VERSION (\S+)", text, re.MULTILINE).group(1)


def metadata():
    about = project()
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {about['name']}",
        f"Version: {version()}",
        f"Summary: {about['description']}",
        f"License: {about['license']['text']}",
        f"Requires-Python: {about['requires-python']}",
    ]
    for extra, packages in about["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {package}; extra == "{extra}"' for package in packages]
    lines += ["Description-Content-Type: text/markdown", ""]
    return "\n".join(lines) + "\n" + (ROOT / about["readme"]).read_text(encoding="utf-8")


def tag():
    """This Python's own ABI, and this machine's platform."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{python}-{python}-{platform}"


def stage(folder):
    """Compiles the package and installs it into the folder."""
    options = ["CMAKE_BUILD_TYPE=Release", f"Python_EXECUTABLE={sys.executable}"]
    # A compiler that is newer than ours may warn of what ours does not.
    options += ["LOCKSTEP_PYTHON=ON", "LOCKSTEP_WERROR=OFF"]
    options += [f"LOCKSTEP_{part}=OFF" for part in ("TESTS", "BENCH", "CUDA")]
    own = shlex.split(os.environ.get("LOCKSTEP_CMAKE", ""))
    configured = ["-G", "Ninja", "-S", ROOT, "-B", BUILD, *(f"-D{each}" for each in options), *own]
    for words in [
        configured,
        ["--build", BUILD, "--target", "lockstep_python_package"],
        ["--install", BUILD, "--component", "python", "--strip", "--prefix", folder],
    ]:
        subprocess.run(["cmake", *words], check=True)


class Wheel:
    """A zip file that lists what is in it."""

    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, data, mode=0o644):
        info = zipfile.ZipInfo(name, STAMP)
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")

    def close(self, info_folder):
        name = f"{info_folder}/RECORD"
        lines = "\n".join([*self.record, f"{name},,"]) + "\n"
        self.zip.writestr(zipfile.ZipInfo(name, STAMP), lines)
        self.zip.close()


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """What pip asks first: else it compiles a wheel to read its metadata, then another one."""
    info = pathlib.Path(metadata_directory) / f"lockstep-{version()}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(metadata(), encoding="utf-8")
    return info.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    info = f"lockstep-{version()}.dist-info"
    name = f"lockstep-{version()}-{tag()}.whl"
    with tempfile.TemporaryDirectory() as folder:
        stage(folder)
        wheel = Wheel(os.path.join(wheel_directory, name))
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.is_file():
                wheel.add(path.relative_to(folder).as_posix(), path.read_bytes())
        wheel.add(f"{info}/METADATA", metadata().encode())
        wheel.add(f"{info}/LICENSE", (ROOT / "LICENSE").read_bytes())
        described = ["Wheel-Version: 1.0", "Generator: lockstep", "Root-Is-Purelib: false"]
        wheel.add(f"{info}/WHEEL", "\n".join([*described, f"Tag: {tag()}", ""]).encode())
        wheel.close(info)
    return name


def source_files():
    """What git knows; in an unpacked sdist, everything but what was built."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "-C", ROOT, "ls-files", "-z"], check=True, capture_output=True, text=True
        )
        files = [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    else:
        files = [
            path.relative_to(ROOT).as_posix()
            for path in ROOT.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        ]
        built = re.compile(r"build[^/]*/|\.cache/|PKG-INFO$")
        files = [name for name in files if not built.match(name)]
    charts = [f".cache/report-bundle/{name}" for name in CHARTS]
    return sorted(files) + [name for name in charts if (ROOT / name).is_file()]


def build_sdist(sdist_directory, config_settings=None):
    top = f"lockstep-{version()}"
    name = f"{top}.tar.gz"
    # gzip and tar stamp what they write; the same sources are the same bytes here.
    with open(os.path.join(sdist_directory, name), "wb") as file, gzip.GzipFile(
        fileobj=file, mode="wb", filename="", mtime=0
    ) as packed, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:

        def add(path, data, mode):
            entry = tarfile.TarInfo(f"{top}/{path}")
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))

        for path in source_files():
            executable = os.access(ROOT / path, os.X_OK)
            add(path, (ROOT / path).read_bytes(), 0o755 if executable else 0o644)
        add("PKG-INFO", metadata().encode(), 0o644)
    return name


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []
