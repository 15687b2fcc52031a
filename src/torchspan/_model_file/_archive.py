# SPDX-License-Identifier: MIT
"""The ``.pt2`` archive on disk: its records, read without torch and written whole or not at all.

A ``.pt2`` is a zip of stored records below one folder. The CPU's build named ``model`` lies where
plain PyTorch looks for it; every other build lies under ``data/torchspan``, because PyTorch's own
Python loaders open every build that they see and fail on a machine without its device.
"""

from __future__ import annotations

import errno
import hashlib
import shutil
import struct
import tempfile
import warnings
import weakref
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchspan._aoti import OPENED
from torchspan._errors import ModelFileError, ModelFileNotFoundError
from torchspan._log import notice
from torchspan._model_file._description import Build, Description
from torchspan._model_file._lock import locked

if TYPE_CHECKING:
    from torch.export import ExportedProgram

__all__ = [
    "Archive",
    "BuildFiles",
    "OwnFolder",
    "add_builds",
    "build_folder",
    "digest_files",
    "place_files",
    "quiet_torch",
    "read_program",
    "write_archive",
    "written_aside",
]

DESCRIPTION = "extra/torchspan.json"
_PLAIN = "data/aotinductor/"

# What zipfile raises on bytes that are no zip, or one that says nonsense of itself.
_NO_ARCHIVE = (zipfile.BadZipFile, EOFError, NotImplementedError, ValueError, struct.error)
_ENDS = b"PK\x05\x06"

# What network file systems say that were mounted without locks.
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)


class OwnFolder:
    """A temporary folder that goes when nobody holds it any more."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="torchspan-build-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True)
class BuildFiles:
    """A build and the files on disk that it consists of, with the folder that they go with."""

    build: Build
    files: tuple[Path, ...]
    folder: OwnFolder | None = None

    def called(self, name: str) -> BuildFiles:
        """The same files as a build of another name."""
        return replace(self, build=replace(self.build, name=name, folder=build_folder(name)))


class Archive:
    """The records of one model file, opened for reading.

    Attributes:
        path: The file.
        root: The folder that all records lie below, or ``""``.
        names: The records, without the root.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except FileNotFoundError as error:
            raise ModelFileNotFoundError(f"there is no model file {path}.") from error
        except IsADirectoryError as error:
            raise ModelFileError(f"{path} is a folder; give a model file.") from error
        except _NO_ARCHIVE as error:
            raise ModelFileError(_no_archive(path)) from error
        except OSError as error:
            raise ModelFileError(f"{path} cannot be read: {error.strerror}.") from error
        whole = self._zip.namelist()
        self.root = whole[0].split("/", 1)[0] + "/" if whole and "/" in whole[0] else ""
        self.names = [name.removeprefix(self.root) for name in whole]

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def read(self, name: str) -> bytes:
        """The bytes of one record, checked against the sum stored with it.

        Raises:
            ModelFileError: The record is missing or damaged.
        """
        try:
            return self._zip.read(self.root + name)
        except (KeyError, OSError, RuntimeError, zlib.error, *_NO_ARCHIVE) as error:
            raise ModelFileError(
                f"{self.path} is damaged: its record {name} cannot be read ({error}). Copy the "
                "file again, or save the model again."
            ) from error

    def text(self, name: str) -> str:
        """One record as text.

        Raises:
            ModelFileError: The record is missing, damaged or no text.
        """
        try:
            return self.read(name).decode()
        except UnicodeDecodeError as error:
            raise ModelFileError(f"{self.path} is damaged: {name} is no text.") from error

    def unpack(self, folder: str, target: Path) -> None:
        """Write the records below ``folder`` to files in ``target``, which must exist.

        Raises:
            ModelFileError: A record is damaged, or there is none.
        """
        files = [name for name in self.names if name.startswith(folder + "/")]
        if not files:
            raise ModelFileError(f"{self.path} is damaged: it names {folder}, which is not there.")
        for name in files:
            (target / Path(name).name).write_bytes(self.read(name))

    def sizes(self, folder: str) -> dict[str, int]:
        """Name and size of each file of the build in ``folder``, from the table of contents."""
        return {
            Path(each.filename).name: each.file_size
            for each in self._zip.infolist()
            if each.filename.startswith(f"{self.root}{folder}/")
        }

    def program_sums(self) -> list[tuple[str, int, int]]:
        """Name, size and checksum of each record of the program: the same for the same program."""
        folders = ("models/", "data/weights/", "data/constants/")
        return sorted(
            (each.filename.removeprefix(self.root), each.file_size, each.CRC)
            for each in self._zip.infolist()
            if each.filename.removeprefix(self.root).startswith(folders)
        )


def build_folder(name: str) -> str:
    """Where a build's files lie in the archive: the one called ``model`` is plain PyTorch's."""
    return f"{_PLAIN}model" if name == "model" else f"data/torchspan/{name}"


def place_files(built: BuildFiles, folder: Path) -> None:
    """Lay a build's files out below ``folder`` as its opened form expects them, by links."""
    target = folder / OPENED
    target.mkdir(parents=True)
    for file in built.files:
        (target / file.name).symlink_to(file.resolve())


def digest_files(files: Sequence[Path]) -> str:
    """SHA-256 over the names and bytes of a build's files, whatever their order."""
    total = hashlib.sha256()
    for file in sorted(files, key=lambda each: each.name):
        with file.open("rb") as stream:
            inner = hashlib.file_digest(stream, "sha256")
        total.update(f"{file.name}\0{inner.hexdigest()}\n".encode())
    return total.hexdigest()


def read_program(path: Path) -> ExportedProgram:
    """Read the exported program alone; unlike ``torch.export.load``, no build is opened.

    Raises:
        ModelFileError: The file holds no program, or is damaged.
    """
    # torch.export takes a second to import; a program that only runs builds need not wait for it.
    from torch.export.pt2_archive import _package as pt2

    try:
        with quiet_torch(), pt2.PT2ArchiveReader(str(path)) as reader:
            names = [name for name in reader.get_file_names() if name == "models/model.json"]
            programs = pt2._load_exported_programs(reader, names, None)
    except Exception as error:
        raise ModelFileError(
            f"the program in {path} cannot be read ({str(error).splitlines()[0]}); it is damaged, "
            "or this torch is too old for it. Save the model again."
        ) from error
    if "model" not in programs:
        raise ModelFileError(f"{path} holds no exported program named 'model'. Save it again.")
    program: ExportedProgram = programs["model"]
    return program


def write_archive(
    path: Path, program: ExportedProgram, description: Description, builds: Sequence[BuildFiles]
) -> None:
    """Write a whole ``.pt2``: program, weights, builds, description.

    Raises:
        ModelFileError: The file cannot be written.
    """
    from torch.export.pt2_archive import _package as pt2

    whole = description.with_builds([each.build for each in builds])
    plain: dict[str, Any] = {
        each.build.name: [str(file) for file in each.files]
        for each in builds
        if each.build.folder.startswith(_PLAIN)
    }
    programs = {"model": program}
    extra = {Path(DESCRIPTION).name: whole.to_json()}
    with written_aside(path) as aside:
        with quiet_torch():
            pt2.package_pt2(
                str(aside),
                exported_programs=programs,
                aoti_files=plain,
                extra_files=extra,
            )
        with zipfile.ZipFile(aside, "a", zipfile.ZIP_STORED) as archive:
            for each in builds:
                if each.build.name not in plain:
                    _append(archive, path.stem, each)


def add_builds(
    path: Path, program: Sequence[tuple[str, int, int]], builds: Sequence[BuildFiles]
) -> None:
    """Add builds to a file as it now is, replacing those that were made for the same.

    Args:
        path: The file.
        program: The sums of the program that the builds were compiled from.
        builds: What to add.

    Raises:
        ModelFileError: The file cannot be read or written, or holds another program by now.
    """
    with written_aside(path) as aside:
        with Archive(path) as old:
            root = old.root
            if old.program_sums() != program:
                raise ModelFileError(
                    f"{path} was saved anew while a build for it was compiled, so the build is not "
                    "of the model that it now holds. Nothing was added; compile it again."
                )
            description = Description.from_json(old.text(DESCRIPTION), path)
        names = {build.purpose: build.name for build in description.builds}
        builds = [each.called(names.get(each.build.purpose, each.build.name)) for each in builds]
        added = [each.build for each in builds]
        replaced = {build.name for build in added}
        kept = [build for build in description.builds if build.name not in replaced]
        stale = (f"{root}{DESCRIPTION}", *(f"{root}{build.folder}/" for build in added))
        shutil.copyfile(path, aside)
        with zipfile.ZipFile(aside, "a", zipfile.ZIP_STORED) as archive:
            # Dropping an entry from the central directory leaves its few bytes behind unread;
            # copying every weight to close the gap would cost more than they do.
            archive.filelist[:] = [
                each for each in archive.filelist if not each.filename.startswith(stale)
            ]
            archive.NameToInfo = {each.filename: each for each in archive.filelist}
            for each in builds:
                _append(archive, root.rstrip("/"), each)
            whole = description.with_builds([*kept, *added])
            archive.writestr(f"{root}{DESCRIPTION}", whole.to_json())


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """Give a path beside ``path`` to write to, and move the file into place when it is whole.

    Of several processes that write the same file, one at a time is inside; what is read of the
    file there is what it will replace.

    Raises:
        ModelFileError: The folder is not there, is full or cannot be written to.
    """
    try:
        with _own_folder(path) as folder:
            aside = folder / path.name
            yield aside
            aside.replace(path)
    except ModelFileError:
        raise
    except FileNotFoundError as error:
        raise ModelFileError(f"cannot write {path}: there is no folder {path.parent}.") from error
    except OSError as error:
        raise ModelFileError(f"cannot write {path}: {error.strerror or error}.") from error


@contextmanager
def quiet_torch() -> Iterator[None]:
    """Keep torch's warnings about its own deprecated parts from torchspan's users."""
    with warnings.catch_warnings():
        for category in (FutureWarning, DeprecationWarning, UserWarning):
            warnings.simplefilter("ignore", category)
        yield


@contextmanager
def _own_folder(path: Path) -> Iterator[Path]:
    """A folder beside ``path`` for the one process that writes it, where there are locks."""
    name = f".torchspan-{path.name}"
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(path.with_name(f"{name}.lock")))
            for left in path.parent.glob(f"{escape(name)}.partial-*"):
                shutil.rmtree(left, ignore_errors=True)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            notice(
                f"{path.parent} lies on a file system without locks ({error.strerror}). Let only "
                f"one process at a time save or compile {path.name} there."
            )
        folder = Path(tempfile.mkdtemp(prefix=f"{name}.partial-", dir=path.parent))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        yield folder


def _append(archive: zipfile.ZipFile, root: str, each: BuildFiles) -> None:
    for file in each.files:
        archive.write(file, f"{root}/{each.build.folder}/{file.name}")


def _no_archive(path: Path) -> str:
    size = path.stat().st_size
    with path.open("rb") as stream:
        begins = stream.read(4) == b"PK\x03\x04"
        stream.seek(max(0, size - 22))
        ends = stream.read(4) == _ENDS
    if begins and ends:
        return (
            f"{path} is damaged: its table of contents makes no sense. Copy the file again, or "
            "save the model again."
        )
    if begins:
        return (
            f"{path} is truncated: it begins as a model file, but ends after {size} bytes without "
            "its table of contents. Copy the file again, or save the model again."
        )
    return (
        f"{path} is no model file: a .pt2 or TorchScript .pt archive was expected. Make one with "
        "torchspan.save or 'torchspan export'."
    )
