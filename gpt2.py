"""GPT-2 in plain NumPy: a text goes in, a likely continuation comes out.

    python gpt2.py "Alan Turing theorized that computers would one day become"

GPT-2 does one thing: from the tokens so far, it tells how likely each token of its vocabulary is
to come next. Asking again and again, each answer appended to the question, makes a text:

    "Alan Turing theorized"        text
       |  encoder.py               cut into tokens; each is a number, its id
    36235 39141 18765 1143         ids       [B, T]
       |  wte[ids], wpe[positions] a vector for which token it is, plus one for where it stands
    x                              vectors   [B, T, C]
       |  block, L times           attention: each vector gathers from those before it
       |                           mlp: each vector is worked over by itself
    x                              vectors   [B, T, C]
       |  layer_norm, wte          the last vector compared with every token of the vocabulary
    logits                         scores    [B, V]
       |  sample                   one token is picked, appended, and round we go
    326                            one id a row
       |  encoder.py
    " that"                        text

The file builds this up from the smallest part: nothing is used before it was defined. A comment
in square brackets is the shape of each array that its line names or returns. One letter, one
meaning:

    B  samples that grow side by side       C  numbers in a token's vector (n_embd)
    T  tokens given in this call            H  attention heads (n_head)
    S  tokens so far: T and those before    D  numbers a head works on, C / H
    V  tokens in the vocabulary (n_vocab)   L  layers (n_layer)
    ...  any leading axes

At most n_ctx tokens fit in: so many positions the model learned, 1024 in OpenAI's. The weights
have the names of OpenAI's checkpoint. wte and wpe are the tables of token and position vectors; a
layer norm (ln) has {"g", "b"}, to scale and to shift; what begins with c_ is a linear layer, a
matrix and its bias, {"w", "b"}. utils.py shows the whole tree.
"""

import math

import numpy as np

# ---- The parts of a layer ------------------------------------------------------------------
#
# All numbers are float32 up to the logits. Factors are Python floats, because a Python float
# follows the array it meets, while under NumPy 2 a np.float64, such as np.sqrt(64), would turn
# the array into float64.


def gelu(x):
    """Gaussian error linear unit, the tanh form: about 0 for x << 0, about x for x >> 0.

    0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), from Hendrycks and Gimpel, arXiv 1606.08415.
    """
    cubic = x + 0.044715 * x * x * x  # NumPy's x**3 would take many times longer
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2 / math.pi) * cubic))


def softmax(x):
    """Shares that add up to 1 along the last axis, in the proportions of e^x; -inf gives 0."""
    exps = np.exp(x - x.max(axis=-1, keepdims=True))  # "- max": e^x cannot overflow, same shares
    return exps / exps.sum(axis=-1, keepdims=True)


def layer_norm(x, g, b):
    """Each vector brought to mean 0 and variance 1, then multiplied by g and shifted by b."""
    centered = x - x.mean(axis=-1, keepdims=True)
    variance = (centered * centered).mean(axis=-1, keepdims=True)
    normed = centered / np.sqrt(variance + 1e-5)  # or a constant vector would give 0 / 0
    return g * normed + b


def linear(x, w, b=0.0):
    """x @ w + b for each vector of x: [..., n_in] becomes [..., n_out]; w is [n_in, n_out]."""
    n_in, n_out = w.shape
    # Up to 3 vectors are multiplied one at a time, which reads w just as it lies in memory. More
    # of them go faster in one product of matrices, although that first rearranges all of w.
    rows = x.reshape(-1, 1, n_in) if x.size < 4 * n_in else x.reshape(-1, n_in)
    y = rows @ w
    y += b  # in place: another array of that size would take time
    return y.reshape(*x.shape[:-1], n_out)


def mlp(x, c_fc, c_proj):
    """What each vector makes of itself, whatever its neighbours: [B, T, C]."""
    hidden = linear(x, **c_fc)       # [B, T, 4C]
    active = gelu(hidden)            # [B, T, 4C]
    return linear(active, **c_proj)  # [B, T, C]


def attention(x, n_head, visible, layer_kv, c_attn, c_proj):
    """What each vector gathers from itself and those before it: [B, T, C].

    This is the only place where information passes from one token to another. Each new token
    makes a key (what it will be found by), a value (what it passes on when found) and a query
    (what it looks for). The query is compared with the keys of all tokens that it may see; softmax
    turns the scores into shares, in which it gathers these tokens' values. H heads do so side by
    side, each with its own part of the numbers.

    visible: bool [T, S], row = the token that looks, column = the token looked at.
    layer_kv: the keys and values of this layer, float32 [2, B, H, S, D]: a view of the cache. Those
    of earlier calls are there already; the last T places are free, and are filled here.
    """
    B, T, C = x.shape
    D = C // n_head

    # The columns of c_attn are all queries, then all keys, then all values; within each, one head
    # after the other. So 3 comes before H: the other way round has the same size and is wrong.
    qkv = linear(x, **c_attn)                    # [B, T, 3C]
    split = qkv.reshape(B, T, 3, n_head, D)      # [B, T, 3, H, D]
    by_head = split.transpose(2, 0, 3, 1, 4)     # [3, B, H, T, D]
    q, k, v = by_head                            # [B, H, T, D]
    layer_kv[0, :, :, -T:] = k  # into the cache
    layer_kv[1, :, :, -T:] = v
    keys, values = layer_kv                      # [B, H, S, D]

    # The sum of D independent products of mean 0 and variance 1 has the variance D. Division by
    # sqrt(D) makes that 1 again, so that softmax weighs tokens instead of picking one. It is done
    # to the query, which does the same to all its scores.
    scaled_q = q / math.sqrt(D)                  # [B, H, T, D]
    scores = scaled_q @ keys.swapaxes(-2, -1)    # [B, H, T, S]
    masked = np.where(visible, scores, -np.inf)  # [B, H, T, S]
    weights = softmax(masked)                    # [B, H, T, S]
    gathered = weights @ values                  # [B, H, T, D]

    # A token's heads have to stand side by side before they can be read as one vector.
    by_token = gathered.transpose(0, 2, 1, 3)    # [B, T, H, D]
    merged = by_token.reshape(B, T, C)           # [B, T, C]
    return linear(merged, **c_proj)              # [B, T, C]


def block(x, layer, n_head, visible, layer_kv):
    """One layer: x with what attention and then mlp add to it: [B, T, C].

    layer: its weights, a dict with ln_1, attn, ln_2 and mlp. For the rest, see `attention`.

    Attention and mlp each read a normalised copy, so that their input always has the same scale,
    and add to the sum itself, which is never normalised. So what a layer adds reaches all later
    layers unchanged.
    """
    attn_in = layer_norm(x, **layer["ln_1"])                                   # [B, T, C]
    attn_out = attention(attn_in, n_head, visible, layer_kv, **layer["attn"])  # [B, T, C]
    with_attn = x + attn_out                                                   # [B, T, C]

    mlp_in = layer_norm(with_attn, **layer["ln_2"])                            # [B, T, C]
    mlp_out = mlp(mlp_in, **layer["mlp"])                                      # [B, T, C]
    return with_attn + mlp_out                                                 # [B, T, C]


# ---- The model -----------------------------------------------------------------------------


def with_room(kv, n_past, S, B):
    """kv itself if it has places for S tokens of B samples, else a copy that has.

    kv: float32 [L, 2, B, H, places, D], of which the first n_past places are in use. Places are
    made 256 at a time, so that one more token seldom needs a copy. A kv of one sample is copied
    to each of the B.
    """
    L, _, n_samples, H, n_places, D = kv.shape
    if S <= n_places and B == n_samples:
        return kv
    n_places = math.ceil(S / 256) * 256
    copy = np.empty((L, 2, B, H, n_places, D), dtype=np.float32)
    copy[:, :, :, :, :n_past] = kv[:, :, :, :, :n_past]
    return copy


def gpt2(inputs, wte, wpe, blocks, ln_f, n_head, cache=None):
    """For each token of the vocabulary, a score for coming next; and the cache for the next call.

    inputs: int [B, T], the ids of the new tokens only: those that `cache` does not hold.
    wte, wpe, blocks, ln_f: the weights, as utils.load_encoder_hparams_and_params gives them.
    cache: None at the start of a text, later what the call before returned, for as many rows. A
    cache of one row serves inputs of any number of rows.
    Returns (logits, cache): float32 [B, V], for the token after the last one of each row; and
    (kv, S), the keys and values of all layers, and the number of tokens they belong to.
    Raises IndexError when S exceeds n_ctx, the number of rows of wpe.

    Why there is a cache: a token's key and value depend on that token, its position and the
    tokens before it, on none after it. So they stay right as the text grows, and when they are
    kept, only the new token has to pass through the layers. Its query looks at all of them, and
    is not needed again.

    Continuing a cache leaves what it holds as it is. But two continuations of one cache may write
    to the same free places, so that after the second, the cache that the first returned is wrong.
    """
    B, T = inputs.shape
    C = wte.shape[1]
    if cache is None:
        no_kv = np.empty((len(blocks), 2, B, n_head, 0, C // n_head), dtype=np.float32)
        cache = (no_kv, 0)
    kv, n_past = cache
    S = n_past + T
    kv = with_room(kv, n_past, S, B)

    # No token sees a later one. In training, that kept the model from peeking at what it was to
    # predict, and here the vectors have to come out as they did there. It is also why keys and
    # values, the prompt's included, can be kept: nothing depends on later tokens.
    positions = np.arange(n_past, S)                    # [T]
    visible = np.arange(S) <= positions[:, None]        # [T, S]

    token_vectors = wte[inputs]                         # [B, T, C]
    position_vectors = wpe[positions]                   # [T, C]
    x = token_vectors + position_vectors                # [B, T, C]
    for layer, layer_kv in zip(blocks, kv[:, :, :, :, :S]):
        x = block(x, layer, n_head, visible, layer_kv)  # [B, T, C]

    # Only the last token is asked what comes next: what follows the others is known, and in the
    # 124M model wte is 31% of all weights. wte serves a second time here: it turned each id into a
    # vector, and now scores each id by how well that vector matches.
    last = x[:, -1]                                     # [B, C]
    normed = layer_norm(last, **ln_f)                   # [B, C]
    logits = linear(normed, wte.T)                      # [B, V]
    return logits, (kv, S)


# ---- Sampling ------------------------------------------------------------------------------
#
# Softmax of the logits is the probability of each token. All but `sample` take logits and give
# logits back; a token that may not be picked gets -inf, which is probability 0. After the first
# of them, numbers are float64: 50,257 equal shares, added up one by one in float32, make 1.0004.


def scale_by_temperature(logits, temperature):
    """Logits divided by temperature: below 1 that favours the likely tokens, above 1 the others."""
    # The largest is made 0 first, which changes no probability. It stays 0 at the tiniest
    # temperature, while the others tend to -inf, which is right.
    best = logits.max(axis=-1, keepdims=True)      # [B, 1]
    below_best = logits.astype(np.float64) - best  # [B, V]
    with np.errstate(over="ignore"):
        return below_best / temperature            # [B, V]


def keep_largest(logits, n_kept, smallest):
    """The n_kept largest logits of each row, -inf for the rest: [B, V].

    smallest: [B, 1], the last to be kept. Of several equal to it, the lowest ids are kept.
    """
    larger = logits > smallest                             # [B, V]
    equal = logits == smallest                             # [B, V]
    n_equal = n_kept - larger.sum(axis=-1, keepdims=True)  # [B, 1]
    nth_equal = equal.cumsum(axis=-1)                      # [B, V]
    kept = larger | (equal & (nth_equal <= n_equal))       # [B, V]
    return np.where(kept, logits, -np.inf)                 # [B, V]


def keep_top_k(logits, k):
    """The k largest logits of each row, -inf for the rest; k = 0 keeps all."""
    V = logits.shape[-1]
    if k == 0 or k >= V:
        return logits
    ascending_from_kth = np.partition(logits, V - k, axis=-1)  # [B, V]
    smallest = ascending_from_kth[:, [V - k]]                  # [B, 1]
    return keep_largest(logits, k, smallest)                   # [B, V]


def keep_top_p(logits, p):
    """The largest logits of each row, as few as have the probability p or more; -inf for the rest.

    0 < p <= 1; 1 keeps all. Holtzman et al. 2019, arXiv 1904.09751. OpenAI's own script usually
    keeps one token fewer: it drops the one with which the sum reaches p.
    """
    if p == 1:
        return logits
    descending = np.sort(logits, axis=-1)[:, ::-1]                  # [B, V]
    probs = softmax(descending.astype(np.float64))                  # [B, V]
    mass_before = probs.cumsum(axis=-1) - probs                     # [B, V]
    needed = mass_before < p                                        # [B, V]
    n_kept = needed.sum(axis=-1, keepdims=True)                     # [B, 1]
    smallest = np.take_along_axis(descending, n_kept - 1, axis=-1)  # [B, 1]
    return keep_largest(logits, n_kept, smallest)                   # [B, V]


def sample(logits, rngs, temperature, top_k, top_p):
    """One id for each row of logits [B, V], drawn with that row's own random generator: [B].

    Temperature 0 stands for its limit, the likeliest token, and draws nothing. Temperature comes
    before top_p because it changes probabilities, and so what top_p keeps; top_k comes before
    top_p, which then counts the probabilities among the k.
    """
    if temperature == 0:
        return logits.argmax(axis=-1)                                      # [B]
    tempered = scale_by_temperature(logits, temperature)                   # [B, V]
    within_k = keep_top_k(tempered, top_k)                                 # [B, V]
    within_p = keep_top_p(within_k, top_p)                                 # [B, V]
    # The Gumbel-max trick: with Gumbel noise added to its logit, a token comes out largest with
    # just the probability that softmax gives it. When another number of rows rounds logits
    # differently in the last bit, the largest nearly always stays the same, and so does the text.
    noise = np.stack([rng.gumbel(size=logits.shape[-1]) for rng in rngs])  # [B, V]
    noisy = within_p + noise                                               # [B, V]
    return noisy.argmax(axis=-1)                                           # [B]


# ---- Generating ----------------------------------------------------------------------------

# A long prompt goes in this many tokens at a time: fewer scores are computed only to be masked,
# and the arrays fit into the processor's own fast memory. Much smaller chunks would be slower.
CHUNK = 256


def generate(
    inputs,
    params,
    n_head,
    n_tokens_to_generate,
    rngs,
    temperature=0.0,
    top_k=0,
    top_p=1.0,
    stop_id=None,
):
    """Continue one prompt, token by token, once for each random generator.

    inputs: the prompt, a list of 1 to n_ctx ids. rngs: one numpy.random.Generator a row.
    temperature, top_k, top_p: see `sample` and the functions it calls.
    Yields int [B], the next id of each row, n_tokens_to_generate times. A row that drew stop_id
    yields it again from then on; once all rows have, that is the end.

    All rows have the same prompt, so there is nothing to pad, and it is computed once, as one row.
    When a text outgrows the n_ctx positions that the model knows, its last n_ctx // 2 tokens
    become a new prompt. The cache could not just drop its oldest tokens: the others were computed
    at their old positions, and with the oldest in view.
    """
    B = len(rngs)
    n_ctx = len(params["wpe"])
    stop_id = -1 if stop_id is None else stop_id  # no token has the id -1
    ended = np.zeros(B, dtype=bool)                                     # [B]
    window = np.tile(inputs, (B, 1))
    new_ids, cache = window[:1], None

    for _ in range(n_tokens_to_generate):
        for start in range(0, new_ids.shape[1], CHUNK):
            chunk = new_ids[:, start : start + CHUNK]                   # [1, T], later [B, T]
            logits, cache = gpt2(chunk, **params, n_head=n_head, cache=cache)

        logits_by_row = np.broadcast_to(logits, (B, logits.shape[1]))   # [B, V]
        drawn = sample(logits_by_row, rngs, temperature, top_k, top_p)  # [B]
        next_ids = np.where(ended, stop_id, drawn)                      # [B]
        yield next_ids

        ended = next_ids == stop_id                                     # [B]
        if ended.all():
            return
        new_ids = next_ids[:, None]                                     # [B, 1]
        window = np.append(window, new_ids, axis=1)
        if window.shape[1] > n_ctx:
            window = window[:, -(n_ctx // 2) :]
            new_ids, cache = window, None


# ---- The command line ----------------------------------------------------------------------


def main(
    prompt=None,
    n_tokens_to_generate=40,
    model_size="124M",
    models_dir=None,
    temperature=0.0,
    top_k=0,
    top_p=1.0,
    nsamples=1,
    batch_size=None,
    seed=None,
):
    """Print continuations of a prompt; `python gpt2.py --help` tells what the options mean.

    From the command line every option arrives as text; from Python it may be a number.
    Raises cli.CallError, a ValueError, where the call is wrong; ValueError where a file of the
    model is damaged; OSError where one is missing and cannot be had.
    """
    import cli
    import utils

    # A wrong call is refused before anything slow starts.
    n_tokens_to_generate = cli.integer("n_tokens_to_generate", n_tokens_to_generate, lowest=0)
    temperature = cli.number("temperature", temperature)
    top_k = cli.integer("top_k", top_k, lowest=0)
    top_p = cli.fraction("top_p", top_p)
    nsamples = cli.integer("nsamples", nsamples, lowest=1)
    if batch_size is None:
        batch_size = min(nsamples, 8)
    batch_size = cli.integer("batch_size", batch_size, lowest=1)
    if seed is not None:
        seed = cli.integer("seed", seed, lowest=0)
    if models_dir is None:
        models_dir = utils.MODELS_DIR
    cli.check_model(model_size, models_dir)
    prompt = cli.read_prompt(prompt)  # None: ask for prompts at the terminal

    encoder, hparams = utils.load_encoder_and_hparams(model_size, models_dir)
    n_ctx, n_head = hparams["n_ctx"], hparams["n_head"]
    stop_id = cli.end_of_text(encoder)
    ids = None if prompt is None else cli.encode_prompt(prompt, encoder, n_ctx)
    cli.note_no_effect(temperature, top_k, top_p, nsamples, seed)
    params = utils.load_params(model_size, models_dir, hparams)
    sampling = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "stop_id": stop_id}

    def answer(ids):
        """Print the samples that continue one prompt."""
        # Each sample has a seed of its own, so its draws do not depend on the batch it is in.
        seeds = np.random.SeedSequence(cli.choose_seed(seed, temperature))
        for first in range(0, nsamples, batch_size):
            n_rows = min(batch_size, nsamples - first)
            rngs = [np.random.default_rng(child) for child in seeds.spawn(n_rows)]
            steps = generate(ids, params, n_head, n_tokens_to_generate, rngs, **sampling)
            cli.print_samples(
                steps, n_tokens_to_generate, n_rows, first, nsamples, encoder, len(ids), n_ctx
            )

    if prompt is None:
        cli.session(answer, encoder, n_ctx)
    else:
        answer(ids)


if __name__ == "__main__":
    import cli

    cli.run(main)

# What `uv run gpt2.py "..."` installs by itself:
#
# /// script
# requires-python = ">=3.10"
# dependencies = [
#     "numpy>=1.26",
#     "regex>=2023.12.25",
#     "requests>=2.31",
#     "tqdm>=4.66",
#     "fire>=0.7",
# ]
# ///
