"""GPT-2's tokenizer: it turns a text into ids, and ids back into a text.

    encoder = get_encoder("124M", "models")
    encoder.encode("Hello world")  ->  [15496, 995]
    encoder.decode([15496, 995])   ->  "Hello world"

("124M" is OpenAI's smallest GPT-2. Its files are in the folder models/124M.)

GPT-2 is a model that continues a text. It learned to do so from a large collection of texts: this
is called training. The model works only with ids. An id is the number of a token in the model's
vocabulary, the list of all its tokens. A token is a sequence of bytes of text in UTF-8: often a
word together with the space before it, or a part of a longer word. Each of the 256 single bytes is
a token too. So any text, in any script, can be turned into ids, even if none of its words is in the
vocabulary.

The method is byte-pair encoding (BPE). It has three steps:

    "Hello world"
       |  1. cut the text into pieces, mostly words: PIECE, below
    "Hello"   " world"
       |  2. merge the bytes of each piece into tokens: `merge`, below
    b"Hello"  b" world"
       |  3. look up the id of each token
    15496     995

Step 2 follows a list of merges. Each merge joins a pair of tokens into one. The place of a merge in
the list, counted from 0, is the rank of its pair. A piece starts as single bytes. Then the pair of
neighbours with the lowest rank is joined, again and again, until no pair of neighbours is in the
list:

    H e l l o     in the list: l l (rank 41), e l (161), H e (1288), l o (5183)
    H e ll o      in the list: e ll (439), H e (1288), ll o (18542)
    H ell o       in the list: ell o (10853), H ell (27998)
    H ello        in the list: H ello (15240)
    Hello

OpenAI made the list before the model was trained, by counting. In a large collection of texts, cut
into pieces as in step 1, the most frequent pair of neighbours was joined everywhere, then the pair
that had become the most frequent, and so on, 50,000 times. Each joined pair was added to the list.
So frequent pairs have low ranks.

Two files in a model's folder hold the list and the ids. In vocab.bpe, spaces and newlines separate
the tokens. So that no token contains them, each byte of a token is written as a visible character,
and the byte of a space as "Ġ" (`byte_alphabet` has the rule). encoder.json does the same.

    vocab.bpe       #version: 0.2     <- the version of the format
                    Ġ t               <- the merge of rank 0 joins "Ġ" and "t"
                    Ġ a               <- the merge of rank 1 joins "Ġ" and "a"
                    h e
                    ...

    encoder.json    {"!": 0, ..., "Ġworld": 995, ..., "Hello": 15496, ..., "<|endoftext|>": 50256}

encoder.json has an id for each of the 50,257 tokens: the 256 single bytes, the 50,000 tokens that
the merges make, and <|endoftext|>. The token <|endoftext|> marks the end of a text. In training it
stood between one text and the next. So when the model writes a text, it produces this token where
it considers the text finished. `encode` never returns its id: a piece starts as single bytes, and
no merge makes this token.

Sennrich et al. 2016 (arXiv 1508.07909) used BPE to cut words into parts, starting from characters.
The GPT-2 paper (Radford et al. 2019, section 2.2) starts from bytes: there are only 256 of them,
and each is a token, so every character can be written with tokens. The format of the two files, and
PIECE below, are those of OpenAI's own tokenizer, src/encoder.py in github.com/openai/gpt-2.
"""

import functools
import heapq
import itertools
import json
import os

import regex  # unlike the standard library's re, it supports \p{L}, any letter of any script

from files import read_text

# How a text is cut into pieces. No merge joins bytes of two pieces, neither here nor when the list
# was made. If merges could cross from one piece into the next, a frequent word would fill the
# vocabulary with near-copies of itself: "dog.", "dog!", "dog?". Each piece begins where the one
# before it ended. The alternatives below are tried in order, and the first that fits takes as many
# characters as it can.
# "I'm 25, right?" becomes "I", "'m", " 25", ",", " right", "?".
PIECE = regex.compile(
    r"""
    '(?:s|t|re|ve|m|ll|d)    # an apostrophe with one of these endings, as in I'm. It may stand
                             #   anywhere: "'tis" becomes "'t", "is". It does not fit in I'M, which
                             #   becomes "I", "'", "M". Nor does it fit a curly apostrophe (I’m)
    | [ ]?\p{L}+             # letters, with the space before them if there is one
    | [ ]?\p{N}+             # digits and other numbers, with the space before them
    | [ ]?[^\s\p{L}\p{N}]+   # other characters that are not white space, with the space before
    | \s+(?!\S)              # white space. (?!\S): no visible character may come next. So before a
                             #   word, it leaves the last white-space character. If this is a
                             #   space, it goes with the word: "a   b" becomes "a", "  ", " b"
    | \s+                    # the white-space character that was left, if it is not a space: "a\nb"
                             #   becomes "a", "\n", "b"
    """,
    regex.VERBOSE,
)


# ---- Text to ids and back ------------------------------------------------------------------


def merge(piece, ranks):
    """The tokens of one piece: a list of bytes objects. Joined together, they are the piece.

    piece: bytes. ranks: dict (bytes, bytes) -> rank.

    A token stands in `tokens` at the place of its first byte, and the places of its other bytes
    hold b"". `before` and `after` lead from a token to the places of its neighbours. After the
    first merge of "Hello":

        place     0    1    2    3    4
        tokens    H    e    ll   b""  o
        before   -1    0    1    -    2      -1: no token is before this one
        after     1    2    4    -    5       5: no token comes after this one

    "-" is an old value. It has no effect any more, because no token stands at that place.

    Most pieces are short, but a run of letters without a space may be very long. To search all
    pairs for the lowest rank before each merge would take n * n time for n bytes.
    Instead, the pairs wait in a heap, `candidates`, as (rank, place of the left token). Each merge
    adds at most two entries. A heap of n entries finds the one of lowest rank in about log n steps.
    So all merges together take n log n time.
    (The lists are never shortened. Otherwise tokens would change their places, and the places in
    the heap would be wrong.)
    """
    n_bytes = len(piece)
    tokens = [piece[i : i + 1] for i in range(n_bytes)]
    before = list(range(-1, n_bytes - 1))
    after = list(range(1, n_bytes + 1))

    pairs = zip(tokens, tokens[1:])
    candidates = [(ranks[pair], left) for left, pair in enumerate(pairs) if pair in ranks]
    heapq.heapify(candidates)

    while candidates:
        rank, left = heapq.heappop(candidates)  # of equal ranks, the leftmost
        right = after[left]
        # The entry may be out of date, because of merges since it was put on the heap:
        # (1) The left token was joined with the token before it. Its place now holds b"", which no
        #     merge contains. (`right` is an old value then, and does not matter.)
        # (2) The left or the right token has grown. The pair at `left` is now a different one,
        #     with a different rank or none.
        # (3) The left token has grown to the end of the piece. Then no token comes after it.
        if right == n_bytes or ranks.get((tokens[left], tokens[right])) != rank:
            continue

        tokens[left] += tokens[right]
        tokens[right] = b""
        after[left] = after[right]
        if after[left] < n_bytes:
            before[after[left]] = left

        # The new token forms a pair with the token before it, and another with the one after it.
        for i in (before[left], left):
            if i >= 0 and after[i] < n_bytes:
                new_rank = ranks.get((tokens[i], tokens[after[i]]))
                if new_rank is not None:
                    heapq.heappush(candidates, (new_rank, i))

    return [token for token in tokens if token]


class Encoder:
    """A vocabulary, with `encode` and `decode`.

    tokens[id] holds the bytes of the token with that id. end_of_text is the id of <|endoftext|>.
    gpt2.py, which runs the model, uses this id in two ways. If there is no text to continue, it
    starts from this id, because in training a new text followed it. And it stops when the model
    produces this id.
    """

    def __init__(self, tokens, ranks):
        """tokens: list of bytes, by id. ranks: dict (bytes, bytes) -> rank, as in `merge`."""
        self.tokens = tokens
        self.ranks = ranks
        self.ids = {token: id for id, token in enumerate(tokens)}
        self.end_of_text = len(tokens) - 1  # it comes last: get_encoder checks that
        # For speed only: words recur in a text, so the ids of the 65,536 most recently used pieces
        # are kept. (As a decorator, lru_cache would keep one cache for all Encoders together.)
        self.cached_encode_piece = functools.lru_cache(maxsize=2**16)(self.encode_piece)

    def encode_piece(self, piece):
        """The ids of one piece of text: a tuple of int."""
        return tuple(self.ids[token] for token in merge(piece.encode(), self.ranks))

    def encode(self, text):
        """The ids of a text: a list of int, empty for "".

        Only the text is encoded: no id is added before or after it. "<|endoftext|>" in a text is
        treated as 13 ordinary characters.

        A Python string may contain codes that UTF-8 cannot write, the surrogates. They come from
        UTF-16, another encoding of text, where two of them together stand for one character, such
        as an emoji. `encode` treats two such surrogates as this character, and any other surrogate
        as U+FFFD, the replacement character "�".
        """
        try:
            text.encode()  # only to see whether it can be written in UTF-8
        except UnicodeEncodeError:
            # Going through UTF-16 joins two surrogates that form a character, and replaces others.
            # ("surrogatepass" allows surrogates, which are an error otherwise.)
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        pieces = PIECE.findall(text)
        return list(itertools.chain.from_iterable(map(self.cached_encode_piece, pieces)))

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

        Decode all ids of a text in one call: the bytes of one character may be spread over several
        tokens. Bytes that are not UTF-8, such as an incomplete character, become U+FFFD. The id of
        <|endoftext|> becomes the 13 characters "<|endoftext|>".
        """
        return self.decode_bytes(ids).decode("utf-8", errors="replace")


# ---- Reading the two files -----------------------------------------------------------------


def byte_alphabet():
    """The character that stands for each byte in the two files: a list of 256 characters.

    Some bytes, taken as characters, would be invisible, and vocab.bpe uses spaces and newlines to
    separate its entries. So the files write each byte as a visible character. For 188 of the bytes
    there is a visible character with the same code (Unicode code point), and the byte is written as
    that character: 0x48 as "H". The other 68 are written, in order, as the characters from U+0100
    on. The space is the 33rd of these 68 bytes, so it is written as U+0120, which is "Ġ". The
    newline is the 11th, and is written as U+010A, "Ċ".
    """
    # All but control characters, the space, the no-break space (0xA0) and the soft hyphen (0xAD).
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    substitutes = itertools.count(0x100)
    return [chr(byte) if byte in visible else chr(next(substitutes)) for byte in range(256)]


def read_tokens(path):
    """The tokens in encoder.json: dict of name -> bytes, in the order of their ids.

    A token's name is how the files write it: the token b" world" has the name "Ġworld".
    Raises ValueError naming the file if it is damaged.
    """
    try:
        ids = json.loads(read_text(path))
        names = sorted(ids, key=ids.get)
        in_order = [ids[name] for name in names] == list(range(len(names)))
    except (ValueError, TypeError, AttributeError, RecursionError):
        # ValueError: not UTF-8, or not JSON. TypeError: ids that cannot be compared, such as 1 and
        # null. AttributeError: not a JSON object. RecursionError: nested too deeply.
        raise ValueError(f"{path} is not a JSON object that gives every token an id") from None
    if not in_order:
        raise ValueError(f"{path} does not number its {len(names)} tokens 0, 1, 2, ...")

    alphabet = byte_alphabet()
    foreign = set("".join(names)) - set(alphabet)
    if foreign:
        raise ValueError(f"{path} has a token with {min(foreign)!r}, which stands for no byte")
    # Each character of a name stands for a byte. `translate` replaces it by the character whose
    # code is this byte, for example "Ġ" by the space, whose code is 32. Encoded in Latin-1, a
    # character with a code below 256 is the byte with this number.
    byte_of = {ord(character): byte for byte, character in enumerate(alphabet)}
    return {name: name.translate(byte_of).encode("latin-1") for name in names}


def read_merges(path, tokens):
    """The merges in vocab.bpe: dict (bytes, bytes) -> rank, as `merge` needs it.

    tokens: dict of name -> bytes, from `read_tokens`. vocab.bpe, too, writes tokens by their names.
    Its first line is a version, and is skipped.
    Raises ValueError if the file is damaged. The message names the file, and the line if a line is
    wrong.
    """
    try:
        lines = read_text(path).rstrip("\n").split("\n")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text") from None

    ranks = {}
    for rank, line in enumerate(lines[1:]):
        left, _, right = line.partition(" ")
        if not (left in tokens and right in tokens and left + right in tokens):
            raise ValueError(f"{path}, line {rank + 2}: {line[:80]!r} does not make a token")
        ranks[tokens[left], tokens[right]] = rank
    if len(ranks) < len(lines) - 1:
        raise ValueError(f"{path} lists a merge twice")
    return ranks


def get_encoder(model_size, models_dir):
    """The Encoder of the model in the folder `model_size` of `models_dir`.

    Raises OSError if a file cannot be read, and ValueError, naming the file, if it is damaged.
    """
    folder = os.path.join(os.path.expanduser(models_dir), model_size)
    names_path = os.path.join(folder, "encoder.json")
    merges_path = os.path.join(folder, "vocab.bpe")
    tokens = read_tokens(names_path)
    ranks = read_merges(merges_path, tokens)

    if list(tokens)[-1:] != ["<|endoftext|>"]:
        raise ValueError(f"{names_path} does not have <|endoftext|> as its last token")
    lacking = {bytes([byte]) for byte in range(256)} - set(tokens.values())
    if lacking:
        raise ValueError(f"{names_path} has no token for the byte {min(lacking)!r}")
    if 256 + len(ranks) + 1 != len(tokens):
        raise ValueError(
            f"{names_path} has {len(tokens)} tokens, but 256 bytes, the {len(ranks)} merges of "
            f"{merges_path} and <|endoftext|> make {256 + len(ranks) + 1}"
        )
    return Encoder(list(tokens.values()), ranks)
