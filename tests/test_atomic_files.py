"""Files are whole or as they were, whichever operation on them fails and however."""

import errno
import os
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from tacit import atomic_files
from tacit.atomic_files import made, read_file, remove_leftovers, write_atomic, write_new, write_together
from tacit.locks import LOCK, locked

NAMES = ("a.csv", "b.bin", "c.json")
OLD = {name: f"old {name}".encode() for name in NAMES}
NEW = {name: f"new {name}".encode() * 1000 for name in NAMES}
ERRORS = {number: os.strerror(number) for number in (errno.ENOSPC, errno.EROFS, errno.ENOENT, errno.EIO)}
OPERATIONS = ("fsync", "replace", "link", "mkdir")


class Stop(BaseException):
    """The user, in a hurry."""


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class Failing:
    """Lets one operation on files fail, the ``number``-th; counts them all."""

    def __init__(self, number, error, patched):
        self.done, self.number, self.error = 0, number, error
        for name in OPERATIONS:
            patched.setattr(os, name, self.counted(getattr(os, name)))
        patched.setattr(Path, "open", self.counted(Path.open))

    def counted(self, original):
        def operation(*args, **kwargs):
            self.done += 1
            if self.done == self.number:
                raise self.error
            return original(*args, **kwargs)

        return operation


def each_failure(tmp_path, monkeypatch, before, write):
    """Call ``write(folder)`` with each operation failing in each way; yield the folder and the error."""
    for error in (*(OSError(number, text) for number, text in ERRORS.items()), Stop()):
        for number in range(1, 100):
            folder = tmp_path / f"{type(error).__name__}-{getattr(error, 'errno', 0)}-{number}"
            folder.mkdir()
            for name, data in before.items():
                (folder / name).write_bytes(data)
            with monkeypatch.context() as patched:
                failing = Failing(number, error, patched)
                try:
                    write(folder)
                except (OSError, Stop) as caught:
                    yield folder, caught
                else:
                    assert failing.done == number - 1  # nothing was left to fail
                    break
        assert number > 3


@pytest.mark.parametrize("before", [OLD, {}, {"a.csv": OLD["a.csv"]}], ids=["all there", "none there", "one there"])
def test_together_all_are_new_or_all_as_they_were(before, tmp_path, monkeypatch):
    states = []
    for folder, error in each_failure(tmp_path, monkeypatch, before, lambda folder: write_together(folder, NEW)):
        found = content(folder)
        states.append(found == NEW)
        assert found in (before, NEW)
        if isinstance(error, OSError):
            assert error.filename in {str(folder / name) for name in NAMES}
            assert error.strerror == ERRORS[error.errno]
    assert states.count(True) == 5  # after the last name was given: new, whole, and an error


def test_killed_at_any_moment_every_name_has_the_old_or_the_new_file(tmp_path, monkeypatch):
    for name, data in OLD.items():
        (tmp_path / name).write_bytes(data)
    seen = []

    def watched(original):
        def operation(*args, **kwargs):
            seen.append({name: (tmp_path / name).read_bytes() for name in NAMES})
            return original(*args, **kwargs)

        return operation

    with monkeypatch.context() as patched:
        for name in ("fsync", "replace", "link", "unlink"):
            patched.setattr(os, name, watched(getattr(os, name)))
        write_together(tmp_path, NEW)
    assert len(seen) > 8
    assert all(found[name] in (OLD[name], NEW[name]) for found in seen for name in NAMES)
    assert content(tmp_path) == NEW


def test_where_links_are_not_possible_files_are_given_back_too(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(errno.EPERM, "no links here")))
    for folder, _ in each_failure(tmp_path, monkeypatch, OLD, lambda folder: write_together(folder, NEW)):
        assert content(folder) in (OLD, NEW)


def test_a_new_file_is_there_or_not(tmp_path, monkeypatch):
    """Where links are not possible a rename does it."""
    for folder, _ in each_failure(tmp_path, monkeypatch, {}, lambda folder: write_new(folder / "a", b"new")):
        assert content(folder) in ({}, {"a": b"new"})
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(errno.EPERM, "no links here")))
    write_new(tmp_path / "a", b"new")
    with pytest.raises(FileExistsError, match=r"File exists: .*/a'"):
        write_new(tmp_path / "a", b"other")
    assert (tmp_path / "a").read_bytes() == b"new"


def test_a_new_file_is_never_written_over(tmp_path):
    write_new(tmp_path / "a", b"first")
    with pytest.raises(FileExistsError, match=r"File exists: .*/a'"):
        write_new(tmp_path / "a", b"second")
    assert content(tmp_path) == {"a": b"first"}


def test_many_writers_of_one_name(tmp_path):
    """Threads of one process too: what is there in the end is what one of them wrote, and one new file is enough."""
    refused = []

    def write(number):
        for _ in range(20):
            write_atomic(tmp_path / "shared", bytes([number]) * 10_000)
        try:
            write_new(tmp_path / "new", bytes([number]))
        except FileExistsError:
            refused.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = content(tmp_path)
    assert set(found) == {"shared", "new"}
    assert found["shared"] in {bytes([number]) * 10_000 for number in range(8)}
    assert len(refused) == 7
    assert found["new"][0] not in refused


def test_directories_that_cannot_be_synced(tmp_path, monkeypatch):
    """Some file systems say EINVAL; that is harmless. Others say EIO, which is not."""
    original, said = os.fsync, [errno.EINVAL, errno.ENOTSUP, errno.EIO]

    def fsync(descriptor):
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            number = said.pop(0)
            raise OSError(number, os.strerror(number))
        original(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomic(tmp_path / "a", b"1")
    write_atomic(tmp_path / "a", b"1")
    with pytest.raises(OSError, match="Input/output error"):
        write_atomic(tmp_path / "a", b"2")


def test_names_as_long_as_they_can_be(tmp_path):
    for name in ("n" * 255, "ü" * 127):
        write_atomic(tmp_path / name, b"1")
        write_new(tmp_path / f"2{name[:-1]}", b"2")
    assert len(list(tmp_path.iterdir())) == 4


def test_leftovers_of_a_killed_process(tmp_path):
    (tmp_path / "records").mkdir()
    for name in (".a.csv.partial-1", "records/.b.json.partial-77-abcdef", "a.csv"):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["a.csv", "records"]
    asides = {atomic_files._aside(tmp_path / "a.csv").name for _ in range(100)}
    assert len(asides) == 100
    assert all(Path(name).match(".*.partial-*") for name in asides)


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, message in (
        ("pipe", "Not a regular file"),
        (".", "Is a directory"),
        ("nothing", "No such file"),
        ("/dev/zero", "Not a regular file"),
    ):
        with pytest.raises(OSError, match=message):
            read_file(tmp_path / name)


def _touch_and_stop(path):
    path.touch()
    raise Stop


def test_made_directories_go_again(tmp_path):
    with pytest.raises(Stop), made(tmp_path / "a" / "b"):
        raise Stop
    assert content(tmp_path) == {}
    (tmp_path / "there").mkdir()
    with pytest.raises(Stop), made(tmp_path / "there" / "b"):
        _touch_and_stop(tmp_path / "there" / "b" / "c")
    assert (tmp_path / "there" / "b" / "c").exists()
    with pytest.raises(NotADirectoryError), made(tmp_path / "there" / "b" / "c"):
        pass
    with pytest.raises(FileNotFoundError), made(tmp_path / "gone" / "b", parents=False):
        pass


def test_a_lock_notices_that_its_directory_is_another(tmp_path, monkeypatch, refused):
    run = tmp_path / "run"
    run.mkdir()
    first, second = ExitStack(), ExitStack()
    lock = first.enter_context(locked(run))
    lock.require()
    refused(second.enter_context, locked(run))
    run.rename(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"run was removed or replaced while the command was running"):
        lock.require()
    run.mkdir()
    other = second.enter_context(locked(run))
    assert (lock.held, other.held) == (False, True)
    first.close()
    assert other.held  # what the first let go of was not this
    second.close()
    assert content(run) == {}
    run.joinpath(LOCK).touch()  # of a process that is gone
    monkeypatch.chdir(tmp_path)
    with locked(Path("run")) as lock:
        monkeypatch.chdir("/")
        assert lock.held
    assert content(run) == {}
