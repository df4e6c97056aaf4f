"""GPT-2's tokenizer: text to ids and back, by byte-pair encoding (BPE) of UTF-8 bytes.

    encoder = get_encoder("124M", "models")
    encoder.encode("Hello world")  ->  [15496, 995]
    encoder.decode([15496, 995])   ->  "Hello world"

A token is one of the 256 bytes, so that every text has ids, or a longer run of bytes that was
frequent in the training text, often a word with the space before it.

    "Hello world"
       |  cut the text into pieces, here words (PIECE below)
    "Hello"  " world"
       |  join the bytes of each piece into tokens, a pair of neighbours at a time (`merge`)
    b"Hello"  b" world"
       |  look up the id of each token
    15496  995

What was learned lies beside the weights, in two files. `vocab.bpe` lists the merges: pairs of
tokens that join, in the order in which training found them. `encoder.json` gives every token its
id: 256 bytes, 50,000 merged tokens and <|endoftext|> make GPT-2's 50,257.

The method: Sennrich et al. 2016, arXiv 1508.07909, on bytes as in section 2.2 of the GPT-2 paper.
The files: OpenAI's encoder.py, github.com/openai/gpt-2.
"""

import functools
import heapq
import itertools
import json
import os

import regex  # the standard library's re knows no \p{L}

# Merges never cross the border of a piece, so that no token runs across a space into the next
# word. At each place in the text the first line that matches takes as much as it can:
PIECE = regex.compile(
    r"""
    '(?:s|t|re|ve|m|ll|d)    # an English ending after a straight apostrophe, lower case only
    | [ ]?\p{L}+             # letters of any script, with the space before them
    | [ ]?\p{N}+             # digits and other numbers, with the space before them
    | [ ]?[^\s\p{L}\p{N}]+   # what is neither these nor white space, with the space before it
    | \s+(?!\S)              # white space; before something else, all but its last character,
    | \s+                    #   and then that one, if none of the lines above took it
    """,
    regex.VERBOSE,
)


# ---- Text to ids and back ------------------------------------------------------------------


def merge(piece, ranks):
    """The tokens of one piece: its bytes, joined pair by pair in the order training learned.

    piece: bytes. ranks: dict (bytes, bytes) -> rank, 0 for the merge learned first.
    Returns a list of bytes objects; one after the other, they are `piece`.

    Of the pairs of neighbours that may join, the one with the lowest rank is joined first, the
    leftmost on a tie. A heap finds it, and `before` and `after` spare moving the rest of the
    list: n bytes take n log n time, where a search of the list for each merge would take n * n.
    """
    n_bytes = len(piece)
    tokens = [piece[i : i + 1] for i in range(n_bytes)]  # a joined token stands at its first byte
    before = list(range(-1, n_bytes - 1))  # where the neighbour to the left stands; -1: none
    after = list(range(1, n_bytes + 1))  # where the neighbour to the right stands; n_bytes: none

    pairs = zip(tokens, tokens[1:])
    candidates = [(ranks[pair], left) for left, pair in enumerate(pairs) if pair in ranks]
    heapq.heapify(candidates)

    while candidates:
        rank, left = heapq.heappop(candidates)
        right = after[left]
        # A merge next door may have changed or emptied either place since this was noted down.
        if right == n_bytes or ranks.get((tokens[left], tokens[right])) != rank:
            continue

        tokens[left] += tokens[right]
        tokens[right] = b""
        after[left] = after[right]
        if after[left] < n_bytes:
            before[after[left]] = left

        for i in (before[left], left):  # the two pairs that the new token is part of
            if i >= 0 and after[i] < n_bytes:
                new_rank = ranks.get((tokens[i], tokens[after[i]]))
                if new_rank is not None:
                    heapq.heappush(candidates, (new_rank, i))

    return [token for token in tokens if token]


class Encoder:
    """A vocabulary with `encode` and `decode`; `tokens[id]` is the bytes of each token."""

    def __init__(self, tokens, ranks):
        """tokens: list of bytes, by id. ranks: dict (bytes, bytes) -> rank, as in `merge`."""
        self.tokens = tokens
        self.ranks = ranks
        self.ids = {token: id for id, token in enumerate(tokens)}
        # Ordinary text repeats its words, so the ids of the 65,536 pieces used last are kept.
        self.piece_ids = functools.lru_cache(maxsize=2**16)(self._piece_ids)

    def _piece_ids(self, piece):
        """The ids of one piece of text: a tuple of int."""
        return tuple(self.ids[token] for token in merge(piece.encode(), self.ranks))

    def encode(self, text):
        """The ids of a text: a list of int, empty for "".

        Nothing is added at either end, and "<|endoftext|>" in a text is ordinary characters.
        Half a surrogate pair, which UTF-8 cannot hold, counts as U+FFFD.
        """
        try:
            text.encode()
        except UnicodeEncodeError:
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        pieces = PIECE.findall(text)
        return list(itertools.chain.from_iterable(map(self.piece_ids, pieces)))

    def decode_bytes(self, ids):
        """The bytes of a list of ids. Raises ValueError for an id that no token has."""
        n_tokens = len(self.tokens)
        data = bytearray()
        for id in ids:
            if not 0 <= id < n_tokens:
                raise ValueError(f"no token has the id {id}: ids go from 0 to {n_tokens - 1}")
            data += self.tokens[id]
        return bytes(data)

    def decode(self, ids):
        """The text of a list of ids. Raises ValueError for an id that no token has.

        A character can be spread over several tokens: give them together. Bytes that are not
        UTF-8, such as a character cut short, come out as U+FFFD; the last id as <|endoftext|>.
        """
        return self.decode_bytes(ids).decode("utf-8", errors="replace")


# ---- Reading the two files -----------------------------------------------------------------


def byte_alphabet():
    """The character that stands for each byte in the two files: a list of 256 characters.

    The files are text, so every byte is written as a visible character. 188 bytes are visible
    characters of Latin-1 and stand for themselves. The other 68 are written with the characters
    from U+0100 on; the space, 33rd of these, is U+0120.
    """
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    substitutes = itertools.count(0x100)
    return [chr(byte) if byte in visible else chr(next(substitutes)) for byte in range(256)]


def read_tokens(path):
    """The tokens that encoder.json numbers: dict of name -> bytes, in the order of their ids.

    A name is the token written in the alphabet of `byte_alphabet`.
    Raises ValueError naming the file where it is damaged.
    """
    with open(path, encoding="utf-8") as file:
        try:
            ids = json.load(file)
            names = sorted(ids, key=ids.get)
            in_order = [ids[name] for name in names] == list(range(len(names)))
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise ValueError(f"{path} is not a JSON object that gives every token an id") from None
    if not in_order:
        raise ValueError(f"{path} does not number its {len(names)} tokens 0, 1, 2, ...")

    alphabet = byte_alphabet()
    foreign = set("".join(names)) - set(alphabet)
    if foreign:
        raise ValueError(f"{path} has a token with {min(foreign)!r}, which stands for no byte")
    byte_of = {ord(character): byte for byte, character in enumerate(alphabet)}
    return {name: name.translate(byte_of).encode("latin-1") for name in names}


def read_merges(path, tokens):
    """The merges that vocab.bpe lists: dict (bytes, bytes) -> rank, as `merge` wants them.

    tokens: what `read_tokens` returned. The file's first line is its version.
    Raises ValueError naming the damaged file, and the line if a single one is at fault.
    """
    with open(path, encoding="utf-8") as file:
        try:
            lines = file.read().rstrip("\n").split("\n")
        except UnicodeDecodeError:
            raise ValueError(f"{path} is not UTF-8 text") from None

    ranks = {}
    for rank, line in enumerate(lines[1:]):
        left, _, right = line.partition(" ")
        if not (left in tokens and right in tokens and left + right in tokens):
            raise ValueError(f"{path}, line {rank + 2}: {line[:80]!r} is not two tokens that join")
        ranks[tokens[left], tokens[right]] = rank
    if len(ranks) < len(lines) - 1:
        raise ValueError(f"{path} lists a merge twice")
    return ranks


def get_encoder(model_size, models_dir):
    """The Encoder of the model in the folder `model_size` of `models_dir`.

    Raises OSError where a file cannot be read, ValueError naming the file that is damaged.
    """
    folder = os.path.join(os.path.expanduser(models_dir), model_size)
    names_path = os.path.join(folder, "encoder.json")
    merges_path = os.path.join(folder, "vocab.bpe")
    tokens = read_tokens(names_path)
    ranks = read_merges(merges_path, tokens)

    lacking = {bytes([byte]) for byte in range(256)} - set(tokens.values())
    if lacking:
        raise ValueError(f"{names_path} has no token for the byte {min(lacking)!r}")
    if 256 + len(ranks) + 1 != len(tokens):
        raise ValueError(
            f"{names_path} has {len(tokens)} tokens, but 256 bytes, the {len(ranks)} merges of "
            f"{merges_path} and <|endoftext|> make {256 + len(ranks) + 1}"
        )
    return Encoder(list(tokens.values()), ranks)
