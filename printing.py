"""Prints the texts that the model makes."""

import codecs
import itertools
import os
import stat
import sys

import console


def print_samples(steps, n_tokens, B, first, nsamples, encoder, n_prompt, n_ctx):
    """Prints the texts that gpt2.generate makes for one batch.

    steps: yields the next id of each of B texts, int [B], n_tokens times at most. These are the
    samples from number first + 1 on, of nsamples in all. The prompt has n_prompt ids.
    Whatever stops the steps, what was made until then is printed.
    """
    if nsamples == 1:
        print_as_it_comes(steps, n_tokens, encoder, n_prompt, n_ctx)
        return

    made, stop_id = [], encoder.end_of_text
    try:
        for next_ids in with_bar(steps, n_tokens):
            made.append(next_ids)
    finally:
        # What stopped before its first step has no text. (0 tokens may have been asked for.)
        for i in range(B if made or n_tokens == 0 else 0):
            ids = [next_ids[i] for next_ids in made]
            text = encoder.decode(itertools.takewhile(lambda id: id != stop_id, ids))
            console.write(f"{'=' * 40} SAMPLE {first + i + 1} {'=' * 40}\n{text}\n")
        if first == 0:  # once is enough
            note_window(n_prompt + len(made), n_ctx)


def print_as_it_comes(steps, n_tokens, encoder, n_prompt, n_ctx):
    """Prints one text token by token."""
    if is_in_file(sys.stdout):
        steps = with_bar(steps, n_tokens)
    # The bytes of one character may be spread over several tokens. They are held back until the
    # character is whole.
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    n_steps, stop_id = 0, encoder.end_of_text
    try:
        for [id] in steps:
            n_steps += 1
            if id != stop_id:
                console.write(decoder.decode(encoder.decode_bytes([id])))
    finally:
        console.write(decoder.decode(b"", final=True) + "\n")
        note_window(n_prompt + n_steps, n_ctx)


def is_in_file(stream):
    """Whether a stream goes to a file on disk, so that nobody sees the text as it comes."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (AttributeError, OSError, ValueError):
        return False


def with_bar(steps, n_tokens):
    """The same steps, with a progress bar on standard error if that is a terminal."""
    if not console.is_terminal(sys.stderr):
        return steps
    from tqdm import tqdm

    return tqdm(steps, total=n_tokens, unit="token", leave=False)


def note_window(n_tokens, n_ctx):
    """Says whether a text of n_tokens, prompt included, went on from half a window."""
    # The token at position n_ctx is still drawn from a full window; the one after it is not.
    if n_tokens > n_ctx + 1:
        console.say(
            f"note: the model reads at most {n_ctx} tokens; each time this window was full, "
            f"the text went on from its last {n_ctx // 2}"
        )
