"""Lets one process at a time write into a folder: `with folder_lock.hold(folder): ...`.

It uses a lock of the operating system on an empty file in the folder. Such a lock ends when the
process that holds it ends, even if that was killed, so a file that is left behind blocks nobody.
Where there are no locks, everybody may go on. The lock only saves work: see `receive` in
download.py, which does no harm if two processes write at once.
"""

import contextlib
import os
import time
from pathlib import Path

import console

LOCK_FILE = "downloading.lock"


@contextlib.contextmanager
def hold(folder):
    """Creates the folder if need be, waits for the lock, and holds it.

    A new folder into which nothing was put is removed at the end. Raises OSError, as a line that
    says what to do, if the folder cannot be created or written to.
    """
    all_folders = [folder, *map(str, Path(folder).parents)]
    new_folders = [path for path in all_folders if not os.path.isdir(path)]
    if len(new_folders) > 1:  # [0] is the model's folder, [1] the one around it: models_dir
        console.say(f"note: the folder {new_folders[1]} does not exist yet and will be created")
    path = os.path.join(folder, LOCK_FILE)
    file = None
    try:
        try:
            file = open_locked(path)
        except (OSError, ValueError) as error:  # ValueError: a path with a null character
            reason = f"{folder}: {getattr(error, 'strerror', None) or error}"
            remedy = "choose another with --models_dir"
            raise OSError(f"cannot write into the folder {reason}; {remedy}") from None
        yield
    finally:
        if file is not None:
            # The file is removed while it is still locked, so that nobody locks a file that is
            # about to go. Only Windows cannot remove an open file.
            if os.name == "nt":
                file.close()
            with contextlib.suppress(OSError):
                os.remove(path)
            file.close()
        for new_folder in new_folders:
            with contextlib.suppress(OSError, ValueError):  # something is in it
                os.rmdir(new_folder)


def open_locked(path):
    """The lock file, open and locked until it is closed.

    None if the file is another user's, and we may not open it: then we go on without a lock.
    """
    folder = os.path.dirname(path)
    n_failures, is_waiting = 0, False
    while True:
        os.makedirs(folder, exist_ok=True)
        try:
            file = open(path, "ab")
        except OSError:
            if os.path.exists(path):
                return None
            n_failures += 1
            if n_failures <= 3:  # the process before us may have removed the folder just now
                continue
            raise
        if not lock(file):
            file.close()
            if not is_waiting:
                console.say(f"waiting for another process that is downloading into {folder}")
            is_waiting = True
            time.sleep(1)
        elif os.path.exists(path):
            # In rare cases, what is there now is the new file of a third process, and we have
            # locked the old one, which has been removed. Then both go on, which does no harm.
            return file
        else:  # we hold the lock on a file that the process before us has just removed
            file.close()


def lock(file):
    """Locks an open file, if that is possible. False if another process has locked it."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except PermissionError:
        # On Windows, this means that the file is locked; elsewhere, that it cannot be locked.
        return os.name != "nt"
    except BlockingIOError:
        return False
    except (OSError, ImportError):
        pass  # a file system or a platform without locks
    return True
