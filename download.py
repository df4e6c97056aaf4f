"""Downloads files: from a URL to a complete and checked file on the disk.

To use a mirror, set GPT2_BASE_URL in the environment, or change BASE_URL below.

While a file comes, it is called NAME.part: the part. It is renamed to NAME when it is complete and
the caller's check has accepted it, so there is never half a file under the real name. When a
download breaks off, these are the rules:

- What has come is kept. A part of 1,000 bytes is continued with a request for "bytes=1000-". If the
  server can only send the whole file, its first 1,000 bytes are skipped.
- There are up to four more tries, after pauses of 1, 2, 4 and 8 seconds, as far as the times below
  allow. Whenever new bytes have come, all four are available again. A server that has an error of
  its own (a status of 500 or more), or that is busy (408 or 429), is asked again too. It may ask
  for longer pauses.
- If the server cannot be reached at all, the program gives up within 10 seconds. If the server can
  be reached but stays silent, it gives up after 21 seconds, or after 33 if bytes had come before.
- The next run continues the part, too. If the check then refuses the complete file, the old bytes
  may be the wrong ones: the part is deleted, and the file is downloaded once more.
- All else ends the download at once: any other status, such as 404, a new file with the wrong size
  or content, a full disk.
"""

import contextlib
import errno
import http.client
import os
import re
import shutil
import sys
import time
from urllib.parse import unquote_to_bytes, urlsplit

import requests
import urllib3
from tqdm import tqdm
from urllib3.util import Retry

import console
import folder_lock

BASE_URL = "https://openaipublic.blob.core.windows.net/gpt-2/models"

# All times are in seconds. `complete` says how they work together.
CONNECT_TIMEOUT = 3  # the longest time that one try waits for a connection
READ_TIMEOUT = 10  # the longest time that one try waits for the next byte
PAUSES = (1, 2, 4, 8)  # before each new try
LONGEST_PAUSE = 60  # the longest one that a busy server can ask for
UNREACHABLE = 10  # for all tries together, while there is no connection
SILENT = 25  # for all tries together, while there are connections, but no bytes

# A server that cannot send the rest of a file answers 206 with other bytes than we asked for, or
# 416 (range not satisfiable) with none. Then we ask for the whole file. (206 with the right bytes
# is no error.)
NO_RANGE = (206, 416)


# ---- Where the files are -------------------------------------------------------------------


def base_url():
    """The address of all files, and its login: (user, password), or None if it has none.

    It is GPT2_BASE_URL, such as https://user:password@example.org/models, or BASE_URL. Raises
    ValueError if GPT2_BASE_URL cannot be an address.
    """
    url = os.environ.get("GPT2_BASE_URL", "").strip() or BASE_URL
    try:
        parts = urlsplit(url)
        labels = (parts.hostname or "").removesuffix(".").split(".")
        is_host = parts.port != 0 and all(0 < len(label) < 64 for label in labels)
    except ValueError:  # the port is not a number, or a bracket is missing
        is_host = False
    if not is_host or parts.scheme not in ("http", "https") or re.search(r"[\s?#\\]", url):
        url = re.sub(r"(?s)[?#].*", "...", re.sub(r"(?s)^(\w+://)?.*@", r"\1", url))  # no password
        remedy = "set it to one such as https://example.org/gpt-2/models, or unset it"
        raise ValueError(f"GPT2_BASE_URL is {url!r}, not the address of a mirror: {remedy}")
    login, _, host = parts.netloc.rpartition("@")
    login = tuple(map(unquote_to_bytes, login.partition(":")[::2])) if login else None
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}", login


def root_cause(error):
    """What went wrong at the start of a chain of exceptions: one line, without passwords."""
    while cause := error.__cause__ or (None if error.__suppress_context__ else error.__context__):
        error = cause
    if isinstance(error, http.client.IncompleteRead):
        return "the connection ended"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    # (isinstance would not do: RemoteDisconnected, a subclass, means that no answer came at all.)
    start = "the answer is not HTTP: " if type(error) is http.client.BadStatusLine else ""
    text = " ".join(re.split(r"[\s\x00-\x1f\x7f-\x9f]+", text))  # one line, nothing invisible
    return start + re.sub(r"//\S*@", "//", text)[:200]


# ---- One request ---------------------------------------------------------------------------


def ask(url, login, ask_from):
    """The server's answer to a request for the bytes of a file from number `ask_from` on.

    Its body has not been read yet: read it from `raw`. Raises requests.RequestException if there is
    no answer.
    """
    headers = {"Accept-Encoding": "identity"}  # not compressed
    if ask_from > 0:
        headers["Range"] = f"bytes={ask_from}-"
    timeout = (CONNECT_TIMEOUT, READ_TIMEOUT)
    try:
        with requests.Session() as session:
            # The proxies of the environment are used. The logins in ~/.netrc are not, not even for
            # a mirror: a "default" login there would be sent to any server, and OpenAI's server
            # refuses every request with a login.
            settings = session.merge_environment_settings(
                url, proxies={}, stream=True, verify=None, cert=None
            )
            session.trust_env = False
            # The end of `with` closes the session, but not this connection: an answer with
            # stream=True keeps its connection until it is closed itself.
            return session.get(url, headers=headers, auth=login, timeout=timeout, **settings)
    except requests.RequestException:
        raise
    except (OSError, ValueError) as error:  # such as a missing file of certificates
        raise requests.RequestException(root_cause(error)) from None


def read_headers(response, n_here):
    """The first byte that an answer brings, and the size of the whole file, None if unknown.

    The first byte is number `n_here`, or number 0 if the server sends the whole file. Raises
    requests.HTTPError for any other answer.
    """
    # The numbers in the headers are not those of the file if the server has compressed it.
    is_encoded = response.headers.get("Content-Encoding", "identity") != "identity"
    if response.status_code == 200:
        length = response.headers.get("Content-Length", "")
        is_size = re.fullmatch(r"\d{1,18}", length) and not is_encoded
        return 0, int(length) if is_size else None

    content_range = response.headers.get("Content-Range", "")
    match = re.fullmatch(rf"bytes {n_here}-(\d{{1,18}})/(\d{{1,18}})", content_range)
    if response.status_code == 206 and match and not is_encoded:
        if int(match[1]) + 1 == int(match[2]):  # to the last byte, as asked
            return n_here, int(match[2])
    answer = f"{response.status_code} {response.reason} {content_range}".strip()
    raise requests.HTTPError(f"the server answered {answer}", response=response)


def size_of(path):
    """The size of a file in bytes, 0 if there is no such file."""
    return os.path.getsize(path) if os.path.isfile(path) else 0


def receive(url, login, part, by_range, size, bar):
    """Adds the missing bytes of a file to its part, with one request.

    by_range: whether to ask for the missing bytes only. size: that of the whole file, None if
    unknown. bar: counts the bytes. Raises requests.RequestException if the bytes do not come,
    ValueError if the file has another size, OSError if the disk fails.
    """
    n_here = size_of(part)
    if n_here == size:
        return
    with ask(url, login, n_here if by_range else 0) as response:
        # If there is nothing after the part, the server answers 416 and the size of the file. The
        # part is the whole file then. (If `size` says otherwise, the caller's check will refuse
        # it.)
        if n_here > 0 and response.headers.get("Content-Range") == f"bytes */{n_here}":
            return
        position, full_size = read_headers(response, n_here)
        if response.headers.get("Content-Type", "").startswith("text/html"):
            raise ValueError("it is a web page, perhaps one to log in to this network")
        if None not in (size, full_size) and size != full_size:
            raise ValueError(f"it has {full_size:,} bytes, not {size:,}")
        size = size or full_size

        # Each byte is written to its own place in the file. Where there are no locks, two processes
        # may do that at once, which does no harm: both write the same bytes to the same places. The
        # mode "ab" would put all bytes of both at the end of the file.
        open(part, "ab").close()  # creates the part if need be; "r+b" cannot, "wb" would empty it
        with open(part, "r+b") as file:
            file.seek(n_here)
            # read1 returns what has come. An old urllib3 has only read, which waits for all 4,096.
            read = getattr(response.raw, "read1", response.raw.read)
            try:
                while chunk := read(2**12, decode_content=True):
                    new = chunk[max(0, n_here - position) :]  # without what the part already has
                    file.write(new)
                    bar.update(len(new))
                    position += len(chunk)
                    if size and position > size:
                        raise ValueError(f"it has more than {size:,} bytes")
                reason = "the connection ended" if size and position < size else None
            except (requests.ConnectionError, urllib3.exceptions.HTTPError) as error:
                reason = root_cause(error)
            if reason:
                reason += f" after {position:,}{f' of {size:,}' if size else ''} bytes"
                # With `response`, `complete` can tell that the server was reached.
                raise requests.ConnectionError(reason, response=response)
            file.flush()
            try:
                os.fsync(file.fileno())  # or a power cut could leave a file of zeros
            except OSError as error:
                # Any other error means that this file system has no fsync, which is no problem.
                if error.errno in (errno.EIO, errno.ENOSPC, errno.EDQUOT):
                    raise


# ---- One file ------------------------------------------------------------------------------


def complete(url, login, part, size, bar):
    """Adds all missing bytes of a file to its part, with as many requests as that takes.

    Raises as `receive` does.

    When it gives up: a new try is begun only if it would end in time even if it took as long as it
    may, that is, within UNREACHABLE or SILENT seconds of the last sign of life. Some examples, in
    seconds:

    no connection, each try fails at once    tries at 0, 1 and 3; gives up at 3
    no connection, each try waits for 3      tries at 0 and 4; gives up at 7
    connected, no byte comes                 tries at 0 and 11; gives up at 21
    connected, the last byte came at 0       this try ends at 10; new tries at 11 and 23; gives up
                                             at 33
    """
    size_at_start = largest_size = size_of(part)
    last_sign = time.monotonic()  # of life: when the last try ended that brought bytes or a status
    pauses = [*PAUSES]
    by_range = True  # ask for the missing bytes only
    while True:
        try:
            return receive(url, login, part, by_range, size, bar)
        except requests.RequestException as error:
            now = time.monotonic()
            if size_of(part) > largest_size:
                largest_size, last_sign, pauses = size_of(part), now, [*PAUSES]
            # Any other error, such as an invalid address, would only come again.
            kinds = (requests.HTTPError, requests.ConnectionError, requests.Timeout)
            if not pauses or not isinstance(error, kinds):
                raise
            pause = pauses.pop(0)
            if isinstance(error, requests.HTTPError):
                status = error.response.status_code
                by_range = by_range and status not in NO_RANGE
                if status < 500 and status not in (408, 429, *NO_RANGE):  # 408 and 429: busy
                    raise
                pause = max(pause, pause_asked_for(error.response))
                last_sign = now + pause  # the pause does not count
            else:
                patience, timeout = UNREACHABLE, CONNECT_TIMEOUT
                was_there = error.response is not None or isinstance(error, requests.ReadTimeout)
                has_grown = largest_size > size_at_start
                if was_there or has_grown:  # so there is, or was, a connection
                    patience, timeout = SILENT, READ_TIMEOUT
                if now + pause + timeout >= last_sign + patience:
                    raise
            bar.clear()
            host = urlsplit(url).netloc
            console.say(
                f"cannot download from {host} ({root_cause(error)}); trying again in {pause:.0f} s"
            )
            time.sleep(pause)


def pause_asked_for(response):
    """The seconds that a busy server asks us to wait, at most LONGEST_PAUSE."""
    try:  # the header has a number of seconds, or a date
        seconds = Retry().parse_retry_after(response.headers.get("Retry-After", "0"))
    except (urllib3.exceptions.InvalidHeader, ValueError, OverflowError):
        seconds = 0
    return min(seconds, LONGEST_PAUSE)


def fetch_file(url, login, path, size, check, bar):
    """Downloads one file and checks it. Raises as `receive` does.

    check(part): raises ValueError if the complete part is not the right file.
    """
    name, part = os.path.basename(path), f"{path}.part"
    was_begun = size_of(part) > 0
    bar.set_description(f"downloading {name}")
    try:
        complete(url, login, part, size, bar)
    except BaseException:
        if size_of(part) == 0:
            with contextlib.suppress(OSError):
                os.remove(part)
        raise

    bar.set_description(f"checking {name}")
    try:
        check(part)
    except ValueError as error:
        problem = str(error)
    else:
        return rename(part, path)

    # The check may have mapped the part into memory, and Windows cannot remove a mapped file. An
    # error keeps the variables of the functions that raised it, so the part stays mapped as long as
    # the error is there. Python deletes the error at the end of `except`, and here it is gone.
    bar.update(-size_of(part))  # backwards, to where this file began
    os.remove(part)
    if not was_begun:
        raise ValueError(problem)
    fetch_file(url, login, path, size, check, bar)


def rename(part, path):
    """Gives a part its real name. On Windows, a virus scanner may have it open for a moment."""
    for pause in (0.1, 0.5, 1):
        with contextlib.suppress(PermissionError):
            return os.replace(part, path)
        time.sleep(pause)
    os.replace(part, path)


# ---- The files of a folder -----------------------------------------------------------------


def fetch(folder, names, all_names, expected_size, check, instead):
    """Downloads those of the files `names` that are missing in `folder`.

    The address of a file is base_url, the name of the folder, and the name of the file.
    all_names: all files that belong in the folder; the progress bar counts their bytes.
    expected_size(name): the size of a file in bytes, None if unknown.
    check(name, part): raises ValueError if a part is not the right file.
    instead: what can be done without a download, as the last sentence of an error.
    Raises OSError if the network or the disk fails, ValueError if a file is wrong.
    """
    address, login = base_url()
    with folder_lock.hold(folder):
        paths = {name: os.path.join(folder, name) for name in all_names}
        missing = [name for name in all_names if not os.path.isfile(paths[name])]
        wanted = [name for name in names if name in missing]
        if not wanted:  # another process has just downloaded them
            return
        mirror = "set GPT2_BASE_URL to a mirror"
        if os.environ.get("GPT2_BASE_URL", "").strip():
            mirror = f"correct or unset GPT2_BASE_URL, which is {address}"
        by_hand = f"put the files ({', '.join(missing)}) into {folder} yourself"
        remedy = f"{mirror}, or {by_hand}. {instead}"
        with progress(folder, wanted, paths, expected_size) as bar:
            for name in wanted:
                url = f"{address}/{os.path.basename(folder)}/{name}"
                path, size = paths[name], expected_size(name)
                try:
                    fetch_file(url, login, path, size, lambda part: check(name, part), bar)
                except requests.RequestException as error:
                    problem = f"cannot download {url}: {root_cause(error).rstrip('. ')}"
                    again = "Check the connection and try again"
                    if isinstance(error, requests.HTTPError):
                        again = "Try again later"
                    kept = "What has come is kept. " if size_of(f"{path}.part") else ""
                    raise OSError(f"{problem}. {kept}{again}, or {remedy}") from None
                except OSError as error:
                    if os.path.isfile(path):
                        continue  # without locks, another process was faster
                    failed = error.filename2 or error.filename or path
                    problem = f"cannot save {failed}: {root_cause(error)}"
                    remedy = "Fix that, or choose another folder with --models_dir"
                    kept = "what has been downloaded so far is kept"
                    raise OSError(f"{problem}. {remedy}; {kept}") from None
                except ValueError as error:
                    problem = f"{url} is not the right file: {error}"
                    raise ValueError(f"{problem}. Try again, or {remedy}") from None


@contextlib.contextmanager
def progress(folder, wanted, paths, expected_size):
    """A bar of all bytes in `folder`; where stderr is no terminal, a line before and after."""
    sizes = {name: expected_size(name) for name in paths}
    total = None if None in sizes.values() else sum(sizes.values())
    n_here = sum(size_of(path) or size_of(f"{path}.part") for path in paths.values())
    check_space(folder, sum(size or 0 for size in sizes.values()) - n_here)
    is_terminal = console.is_terminal(sys.stderr)
    options = {"unit": "B", "unit_scale": True, "leave": False, "disable": not is_terminal}
    if not is_terminal:
        known = [sizes[name] for name in wanted]
        n_bytes = "size unknown" if None in known else f"{sum(known):,} bytes"
        console.say(f"downloading {', '.join(wanted)} ({n_bytes}) into {folder}")
    with tqdm(total=total, initial=n_here, **options) as bar:
        yield bar
    if not is_terminal:
        n_bytes = sum(size_of(paths[name]) for name in wanted)
        console.say(f"downloaded and checked {n_bytes:,} bytes")


def check_space(folder, n_missing):
    """Raises OSError if the disk clearly has no room for `n_missing` bytes."""
    try:
        n_free = shutil.disk_usage(folder).free
    except OSError:
        n_free = 0
    if n_free == 0 < n_missing:  # some network drives always say 0
        console.say(f"note: the free space for {folder} is unknown; the download begins anyway")
    elif n_missing > n_free:
        reason = f"{folder} needs {n_missing:,} bytes more, but its disk has only {n_free:,} free"
        raise OSError(f"{reason}: make room, or choose a folder on another disk with --models_dir")
