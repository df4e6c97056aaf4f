"""Prints the texts that the model makes."""

import codecs
import itertools
import sys

import console
import prompts


def print_samples(steps, n_tokens, n_rows, first, nsamples, encoder, n_prompt, n_ctx):
    """Print the texts that gpt2.generate makes for one batch.

    steps: yields int [B], B = n_rows, n_tokens times at most. The batch holds the samples number
    first + 1 to first + n_rows of nsamples, after a prompt of n_prompt ids. Whatever stops the
    steps, what there is gets printed.
    """
    if nsamples == 1 and console.is_terminal(sys.stdout):
        print_as_it_comes(steps, encoder, n_prompt, n_ctx)
        return

    made, stop_id = [], prompts.end_of_text(encoder)
    try:
        for next_ids in with_bar(steps, n_tokens):
            made.append(next_ids)
    finally:
        for row in range(n_rows):
            ids = [next_ids[row] for next_ids in made]
            text = encoder.decode(itertools.takewhile(lambda id: id != stop_id, ids))
            if nsamples > 1:
                console.write(f"{'=' * 40} SAMPLE {first + row + 1} {'=' * 40}\n")
            console.write(text + "\n")
        if first == 0:  # once is enough
            note_window(n_prompt + len(made), n_ctx)


def print_as_it_comes(steps, encoder, n_prompt, n_ctx):
    """Print one text token by token."""
    # A character can end in a later token than it begins: its bytes are held back until then.
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    n_steps = 0
    try:
        for [id] in steps:
            n_steps += 1
            if id != prompts.end_of_text(encoder):
                console.write(decoder.decode(encoder.decode_bytes([id])))
    finally:
        console.write(decoder.decode(b"", final=True) + "\n")
        note_window(n_prompt + n_steps, n_ctx)


def with_bar(steps, n_tokens):
    """The same steps, with a progress bar on stderr if that is a terminal."""
    if not console.is_terminal(sys.stderr):
        return steps
    from tqdm import tqdm

    return tqdm(steps, total=n_tokens, unit="token", leave=False)


def note_window(n_tokens, n_ctx):
    """Say whether a text of n_tokens, prompt included, had to go on from half a window."""
    # The token at position n_ctx is still drawn from a full window; the one after it is not.
    if n_tokens > n_ctx + 1:
        console.say(f"note: after {n_ctx} tokens the text went on from its last {n_ctx // 2} alone")
