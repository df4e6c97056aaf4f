"""Damages the index of the small test checkpoint at random and reads it, for as long as you like.

    python tools/fuzz_checkpoint.py [SECONDS] [SEED]

Whatever the damage, the reader must read the index or raise a ValueError: one line that names the
file. This may take a second at most, and little memory. The tests do the same, but only briefly.
"""

import os
import random
import sys
import tempfile
import time
import tracemalloc

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import checkpoint  # noqa: E402
import openai_files  # noqa: E402
from tools.write_checkpoint import trailer  # noqa: E402

SMALL = os.path.join(os.path.dirname(__file__), "..", "tests", "checkpoints", "small")
MOST_SECONDS = 1  # of the processor's time
MOST_MEMORY = 2**24  # bytes; the index itself has 1,366


def read_varints(data, count):
    """The first `count` varints in some bytes."""
    numbers, position = [], 0
    for _ in range(count):
        number, position = checkpoint.read_varint(data, position)
        numbers.append(number)
    return numbers


def reseal(damaged, index):
    """Gives the blocks of a damaged index right checksums, so that the reader gets further.

    index: the sound index, which says where the blocks are.
    """
    *_, offset, size = read_varints(index[-48:], 4)
    blocks = [read_varints(handle, 2) for _, handle in checkpoint.read_block(index, offset, size)]
    for offset, size in [*blocks, (offset, size)]:
        end = offset + size
        if end + 5 <= len(damaged):
            damaged = damaged[:end] + trailer(damaged[offset:end]) + damaged[end + 5 :]
    return damaged


def read_or_refuse(path, index, hparams):
    """Writes an index and reads it.

    Returns the message of the ValueError, or None if there is none.
    """
    with open(path, "wb") as file:
        file.write(index)
    start = time.process_time()
    message = None
    try:
        checkpoint.check_tensors(path, checkpoint.read_index(path), hparams)
    except ValueError as error:
        message = str(error)
        assert str(path) in message and "\n" not in message, message
    assert time.process_time() - start < MOST_SECONDS
    return message


def damage(index, rng):
    """The index with a few bytes overwritten, removed or inserted, or single bits flipped."""
    damaged = bytearray(index)
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        start = rng.randrange(len(damaged) + 1)
        end = min(len(damaged), start + rng.choice([0, 1, 1, 1, 2, 4, 9, 100]))
        kind = rng.randrange(5)
        if kind == 0:
            damaged[start:end] = rng.randbytes(end - start)
        elif kind == 1:
            damaged[start:end] = bytes([rng.choice([0, 1, 127, 128, 255])]) * (end - start)
        elif kind == 2:
            del damaged[start:end]
        elif kind == 3:
            damaged[start:start] = rng.randbytes(end - start)
        elif start < end:  # one bit
            damaged[start] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def main(seconds="60", seed="0"):
    rng = random.Random(int(seed))
    with open(os.path.join(SMALL, "model.ckpt.index"), "rb") as file:
        index = file.read()
    hparams = openai_files.read_hparams(os.path.join(SMALL, "hparams.json"))
    checkpoint.read_index(os.path.join(SMALL, "model.ckpt.index"))  # makes the checksum's tables

    outcomes = {}
    end = time.monotonic() + float(seconds)
    tracemalloc.start()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.ckpt.index")
        while time.monotonic() < end:
            damaged = damage(index, rng)
            if rng.random() < 0.8:
                damaged = reseal(damaged, index)
            message = read_or_refuse(path, damaged, hparams)
            kind = "read" if message is None else message.removeprefix(path).lstrip(": ")[:40]
            outcomes[kind] = outcomes.get(kind, 0) + 1
            _, most_memory = tracemalloc.get_traced_memory()
            assert most_memory < MOST_MEMORY
    for kind, count in sorted(outcomes.items(), key=lambda item: -item[1])[:20]:
        print(f"{count:8}  {kind}")
    print(f"{sum(outcomes.values())} damaged files, {most_memory / 2**20:.1f} MiB at most")


if __name__ == "__main__":
    main(*sys.argv[1:])
