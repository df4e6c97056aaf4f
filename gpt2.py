"""GPT-2 in plain NumPy: you give it a text, and it writes a continuation.

    python gpt2.py "Alan Turing theorized that computers would one day become"

GPT-2 is a language model. It reads a text and gives every possible next token a probability. To
write, we pick the likeliest token, or one of the likely ones, append it to the text, and ask again.

A token is a piece of text: a word with the space before it, a part of a word, a number, or a
punctuation mark. The tokenizer in encoder.py cuts a text into tokens. GPT-2's vocabulary is a list
of 50,257 tokens. A token's id is its number in this list. A common word is one token. A rare word
is cut into several: below, three words become four tokens. The model itself sees only ids.

This is how one token is made. (The letters at the right, shapes of arrays, are explained below.)

    "Alan Turing theorized"                 the text
       |  the tokenizer
    "Alan" " Turing" " theor" "ized"        tokens
    36235  39141     18765    1143          ids                              [B, T]
       |  wte[ids] + wpe[positions]         look up each token's embedding, a vector, in the table
       |                                    wte, and add the vector of its position, from wpe
    x                                       a vector for each token          [B, T, C]
       |  block, L times                    a block is one layer. Attention: each token gathers
       |                                    information from itself and the tokens before it. Mlp
       |                                    (multilayer perceptron): each vector changes on its own
    x                                       a vector for each token          [B, T, C]
       |  layer_norm, then wte again        bring the last token's vector to a standard scale, then
       |                                    compare it with the embeddings of all 50,257 tokens
    logits                                  a score for each of these tokens [B, V]
       |  sample                            turn scores into probabilities, and pick one token
    326                                     its id: append it to the ids, to be read next
       |  the tokenizer
    " that"                                 its text, to be printed

All this is computed with fixed matrices and vectors of numbers: the parameters of the model, also
called its weights. In training, the model had to guess each token of 40 GB of text from the tokens
before it, and its parameters were changed, little by little, to make it guess better. The sizes
given here are those of OpenAI's smallest GPT-2, called 124M after its 124 million parameters.

The function `gpt2` is first called with the prompt, the text to be continued (in pieces if it is
long), then once for each new token. What it needs from earlier tokens is kept in a cache.

A comment such as # [B, T, C] gives the shape of the array that its line makes or returns. If a
docstring's first sentence ends with a shape, the result has this shape. Arrays hold float32 numbers
(4 bytes, about 7 digits) or, where we say so, float64 (8 bytes, about 16 digits). The letters mean:

    B  texts that are written side by side, as a batch: each of them is called a sample
    T  tokens of each sample that are given to `gpt2` in one call
    S  tokens so far, from earlier calls and this one: at most 1,024, the context size (n_ctx)
    V  tokens in the vocabulary (n_vocab): 50,257
    K  tokens that may still be picked, see Sampling
    C  numbers in a token's vector (n_embd): 768
    H  heads (n_head), see `attention`: 12
    D  numbers in a vector of one head, C / H: 64
    L  layers (n_layer): 12
    ...  any number of axes before those that are named

Parameters have OpenAI's names; weights.py shows them all. A name with c_ is a linear layer: a dict
with a matrix w and a vector b, which turn a vector x into x @ w + b. A name with ln_ is a layer
norm: a dict with two vectors, g and b. Both are called layers, too, but they are small parts of
the L layers: each of the L has four linear layers and two layer norms, ln_1 before attention and
ln_2 before the mlp. One more layer norm, ln_f (f for final), stands after all L layers.

The functions come smallest part first. Remarks that begin with "For speed only" may be skipped.
"""

# Not a part of GPT-2: this sets what Ctrl-C does, and if NumPy is missing, says so in one line. So
# it runs before NumPy is imported. (sys.path.insert: Python must find the files beside this one.)
if __name__ == "__main__":
    import os
    import sys

    sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
    import console

    console.prepare()

import math

import numpy as np

import checks  # beside this file: refuses wrong arguments, and needs no package

# ---- The parts of a layer ------------------------------------------------------------------


def gelu(x):
    """Gaussian error linear unit (GELU), used between the two linear layers of the mlp below.

    gelu(3) is 2.996, and gelu(-3) is -0.004: large positive numbers pass, negative ones are held
    back. So the graph of gelu bends near 0, and this bend is why gelu is there. Without gelu, the
    two linear layers would do no more than a single one: (x @ w1) @ w2 equals x @ (w1 @ w2).

    GELU multiplies x by the probability that a standard normal (Gaussian) random number is below
    x. GPT-2 uses a close formula by Hendrycks and Gimpel (arXiv 1606.08415): 0.5 x (1 + tanh(z)),
    with z = sqrt(2/pi) (x + 0.044715 x^3). x / (1 + e^(-2z)) is equal to it, and faster in NumPy.
    """
    z = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    with np.errstate(over="ignore"):  # e^(-2z) may overflow to infinity; then the result is 0
        return x / (1.0 + np.exp(-2.0 * z))


def softmax(x):
    """Turns scores into shares: numbers from 0 to 1 that add up to 1, along the last axis.

    Each share is e^score, divided by the sum of all e^score. The scores 1, 2 and 3 become the
    shares 0.09, 0.24 and 0.67. A score of -inf becomes the share 0.
    """
    # Subtracting the largest score divides every e^score by the same number. The shares stay the
    # same, and no e^score can overflow.
    shifted = x - x.max(axis=-1, keepdims=True)
    # For speed only: the next two lines write into the array `shifted` instead of making new ones.
    exps = np.exp(shifted, out=shifted)
    exps /= exps.sum(axis=-1, keepdims=True)
    return exps


def layer_norm(x, g, b):
    """Layer norm: shifts each vector to mean 0, scales it to variance 1, multiplies by g, adds b.

    Mean and variance are taken over the C numbers of one token's vector, never across tokens.
    Before g and b are applied, [1, 2, 3, 4] becomes [-1.34, -0.45, 0.45, 1.34]. The gain g and the
    bias b are parameters, [C] each. Every layer norm has its own.
    """
    centered = x - x.mean(axis=-1, keepdims=True)
    variance = (centered * centered).mean(axis=-1, keepdims=True)
    normed = centered / np.sqrt(variance + 1e-5)  # 1e-5: no 0 / 0 if all C numbers are equal
    return g * normed + b


def linear(x, w, b=0.0):
    """Linear layer: x @ w + b for each vector of x. [..., n_in] becomes [..., n_out].

    w: the matrix, [n_in, n_out]. b: the bias, [n_out], or 0 if there is none.
    """
    n_in, n_out = w.shape
    n_vectors = x.size // n_in
    # For speed only: to multiply many vectors at once, NumPy first makes a rearranged copy of w.
    # For 3 vectors or fewer, this costs more than it saves: so @ gets each as a matrix of one row.
    vectors = x.reshape(n_vectors, 1, n_in) if n_vectors <= 3 else x.reshape(n_vectors, n_in)
    y = vectors @ w
    y += b
    return y.reshape(*x.shape[:-1], n_out)


def mlp(x, c_fc, c_proj):
    """Multilayer perceptron (mlp): transforms each token's vector on its own, [B, T, C].

    It is two linear layers with gelu between them. c_fc ("fully connected") widens each vector to
    4C numbers, and c_proj ("projection") brings it back to C. No token sees another here.
    """
    hidden = linear(x, **c_fc)       # [B, T, 4C]
    active = gelu(hidden)            # [B, T, 4C]
    return linear(active, **c_proj)  # [B, T, C]


def attention(x, n_head, mask, layer_kv, c_attn, c_proj):
    """Multi-head attention: what each token gathers from itself and those before it, [B, T, C].

    This is the only place where information passes from one token to another. From each token's
    vector, the linear layer c_attn makes a query, a key and a value:

        query   what this token looks for
        key     what this token can be found by
        value   what this token hands over to a token that finds it

    The dot product of a query and a key is a score: how well the two match. Softmax turns the
    scores of one query into shares, here called attention weights. The query's token receives the
    sum of all values, each multiplied by its weight. With the weights 0.9 and 0.1, that is 0.9 of
    the first value plus 0.1 of the second.

    H heads do this side by side, so that each can look for something different. A token has its own
    query, key and value in each head, D numbers each. c_attn makes all of them at once, from the
    token's whole vector: 3 * H * D = 3C numbers. In the end, c_proj mixes what the heads found into
    one vector. (The mlp has another c_proj.)

    The keys and values of tokens from earlier calls are kept in the KV cache. The queries of the T
    new tokens are compared with the keys of all S tokens. (`gpt2` explains why this is right.)

    mask: float32 [T, S], the same for all samples and heads. A new token's row has 0 for the tokens
    that it may look at, and -inf for later tokens. Softmax turns -inf into the weight 0.
    layer_kv: this layer's part of the cache, float32 [2, B, H, S, D]: keys, then values. It is a
    view: what is written into its last T places, for the new tokens, is written into the cache.
    """
    B, T, C = x.shape
    D = C // n_head

    # Of a token's 3C numbers, the first C are queries, the next C keys, the last C values. Of each
    # C, the first D are for the first head, the next D for the second, and so on. transpose puts
    # the axes in the order [3, B, H, T, D]: the 3 first, so that q, k and v can be unpacked, and T
    # and D last, because @ multiplies the last two axes.
    qkv = linear(x, **c_attn)                    # [B, T, 3C]
    split = qkv.reshape(B, T, 3, n_head, D)      # [B, T, 3, H, D]
    q, k, v = split.transpose(2, 0, 3, 1, 4)     # [B, H, T, D] each
    layer_kv[0, :, :, -T:] = k  # into the cache
    layer_kv[1, :, :, -T:] = v
    keys, values = layer_kv                      # [B, H, S, D]

    # A score is a sum of D products. If these were independent, with mean 0 and variance 1, their
    # variances would add up to D, here 64, and the score's standard deviation would be sqrt(D),
    # here 8. If one score is 8 higher than another, its weight is about 3,000 times as large (e^8).
    # So the best match would often get nearly all weight, and other tokens could not contribute.
    # Divided by sqrt(D), the scores would have variance 1. Dividing the query divides its scores.
    # For speed only: a query often has more than D scores, so this is less work. And math.sqrt is
    # used because after a division by np.sqrt(D), NumPy 2 would go on in float64.
    scaled_q = q / math.sqrt(D)                  # [B, H, T, D]
    scores = scaled_q @ keys.swapaxes(-2, -1)    # [B, H, T, S]
    masked = scores + mask                       # [B, H, T, S]
    weights = softmax(masked)                    # [B, H, T, S]
    gathered = weights @ values                  # [B, H, T, D]

    # Put the heads of each token side by side: H vectors of D numbers become one of C.
    by_token = gathered.transpose(0, 2, 1, 3)    # [B, T, H, D]
    merged = by_token.reshape(B, T, C)           # [B, T, C]
    return linear(merged, **c_proj)              # [B, T, C]


def block(x, layer, n_head, mask, layer_kv):
    """One layer: x plus what attention and then the mlp add to it, [B, T, C].

    layer: this layer's parameters, a dict with ln_1, attn (a dict with c_attn and c_proj), ln_2 and
    mlp (a dict with c_fc and c_proj). n_head, mask, layer_kv: see `attention`.

    x is called the residual stream. It begins as token embedding plus position embedding and runs
    through all layers. Only attention and the mlp write to it, and they write by adding. So what
    one layer has written is there for all later layers to read. (with_attn is x after attention.)

    Attention and the mlp do not read x itself. They read a copy that has been through a layer norm
    (this is called pre-norm). The numbers in x may get larger with every layer that adds to them,
    but what attention and the mlp read stays on one scale.
    """
    attn_in = layer_norm(x, **layer["ln_1"])                                # [B, T, C]
    attn_out = attention(attn_in, n_head, mask, layer_kv, **layer["attn"])  # [B, T, C]
    with_attn = x + attn_out                                                # [B, T, C]

    mlp_in = layer_norm(with_attn, **layer["ln_2"])                         # [B, T, C]
    mlp_out = mlp(mlp_in, **layer["mlp"])                                   # [B, T, C]
    return with_attn + mlp_out                                              # [B, T, C]


# ---- The model -----------------------------------------------------------------------------


def gpt2(inputs, wte, wpe, blocks, ln_f, n_head, cache=None):
    """Returns the logits (a score for each token that could come next) and the cache.

    inputs: int [B, T], the ids of the new tokens: those that are not in the cache yet.
    wte, wpe, blocks, ln_f: the parameters, as in the dict that utils.load_params returns: the
    tables of token and of position embeddings, a list with a dict for each layer, the last norm.
    cache: None at the start of a text; after that, the cache that the last call returned. Never use
    a cache twice: the call writes into its array.
    Returns (logits, cache). logits: float32 [B, V]. Softmax turns them into probabilities. cache:
    (kv, S), the keys and values of all layers, and the number of tokens that they belong to.
    Raises IndexError if S exceeds n_ctx: wpe has vectors for n_ctx = 1,024 positions only.

    What the cache saves: without it, the whole text would go through all layers again for each new
    token. With it, only the new token does. What that still costs: nearly all parameters are read
    from main memory. (124 million numbers of 4 bytes are 0.5 GB, too much for the processor's own
    fast memory.) This takes longer than calculating with them. And in every head, the new token's
    query meets S keys, and S values are added up. Only this part grows, and S never exceeds n_ctx.

    Why the cache is right: in every layer, a token's key and value are made from the vector it has
    there. This vector depends on the token itself and on those before it, never on later tokens,
    which the mask hides. So its key and value stay the same when tokens are added. Five tokens in
    one call give the same logits as three and then two, up to rounding. (Queries are not kept: a
    token's query is used only in the call in which the token is new.)
    """
    B, T = inputs.shape
    C = wte.shape[1]
    if cache is None:  # an array with 0 places for tokens; with_room, below, makes a larger one
        cache = (np.empty((len(blocks), 2, B, n_head, 0, C // n_head), dtype=np.float32), 0)
    kv, n_past = cache
    S = n_past + T
    kv = with_room(kv, n_past, S, B)  # float32 [L, 2, B, H, places, D], with S places or more

    # The causal mask ("causal": nothing depends on what comes later). In the end, only the last
    # token's vector is used, and the last token may look at all others. So why hide anything from
    # the earlier ones? Because the last token reads their keys and values, and from the second
    # layer on, these depend on what the earlier tokens saw.
    #
    # If the earlier tokens saw later ones, two things would go wrong. First, their vectors would be
    # of a kind that the model never met: in training, it had to guess the next token at every
    # position of a text, so the mask hid the tokens after it. Second, each added token would change
    # these vectors, so beyond the first layer nothing could be cached.
    positions = np.arange(n_past, S)                           # [T]
    is_later = np.arange(S) > positions[:, None]               # [T, S]
    mask = np.where(is_later, -np.inf, 0).astype(np.float32)   # [T, S]

    # The token embedding is the same wherever the token stands. The position embedding says where
    # it stands. Order comes in only here and through the mask, which hides later tokens.
    token_embeddings = wte[inputs]                             # [B, T, C]
    position_embeddings = wpe[positions]                       # [T, C]
    x = token_embeddings + position_embeddings                 # [B, T, C]
    in_use = kv[:, :, :, :, :S]  # [L, 2, B, H, S, D], a view: attention fills the last T places
    for layer, layer_kv in zip(blocks, in_use):
        x = block(x, layer, n_head, mask, layer_kv)            # [B, T, C]

    # Only the token after the last is unknown, so only the last vector is used from here on. (For
    # each other position, logits would be a waste of V * C = 39 million multiplications.) The score
    # of a token of the vocabulary is the dot product of this vector, after a last norm, with the
    # token's embedding: the better they match, the higher the score. So wte is used twice: to read
    # tokens, and to predict them. This is called weight tying.
    last = x[:, -1]                                            # [B, C]
    normed = layer_norm(last, **ln_f)                          # [B, C]
    logits = linear(normed, wte.T)                             # [B, V]
    return logits, (kv, S)


def with_room(kv, n_past, S, B):
    """The array kv itself if it has room for S tokens of B samples, else a larger copy of it.

    kv: float32 [L, 2, B, H, places, D], the first n_past places in use. An array cannot grow, so
    the number of places is rounded up to a multiple of 256: a copy is then needed only once every
    256 tokens. All samples share the prompt: after it, kv holds one sample, to be repeated B times.
    """
    L, _, n_samples, H, n_places, D = kv.shape
    if S <= n_places and B == n_samples:
        return kv
    n_places = math.ceil(S / 256) * 256
    copy = np.empty((L, 2, B, H, n_places, D), dtype=np.float32)
    copy[:, :, :, :, :n_past] = kv[:, :, :, :, :n_past]  # one sample is repeated for all B
    return copy


# ---- Sampling ------------------------------------------------------------------------------

# To sample is to pick the next token from the logits. (A sample is still one text of the batch.)
# Always taking the likeliest token (greedy) gives fluent but dull text that soon repeats itself.
# The alternative is to draw at random, with the probabilities that softmax makes from the logits.
# Before the draw, temperature, top-k and top-p may change the logits of a text, [V]. Each has a
# function below. A token that can no longer be picked has the logit -inf, so the probability 0.


def scale_by_temperature(logits, temperature):
    """Logits shifted so that the largest is 0, then divided by temperature, float64 [V].

    Below 1, likely tokens become likelier. Above 1, probabilities get closer together. Of two
    tokens with the logits 2 and 1, the first has 73% at temperature 1, 88% at 0.5, and 62% at 2.
    """
    # Divided by a tiny temperature, several logits could become infinity, and softmax could not
    # tell them apart. So the largest logit is subtracted first. (As in softmax, this changes no
    # probability.) It is now 0, and stays 0 when it is divided. The others at worst become -inf.
    # Why float64? NumPy would make temperature float32 like the logits, and 1e-50 would become 0.
    below_best = logits.astype(np.float64) - logits.max()  # [V]
    with np.errstate(over="ignore"):
        return below_best / temperature                    # [V]


def ranked(logits):
    """The ids that may still be picked, likeliest first (if equal, the lower id first): int [K]."""
    ids = np.flatnonzero(logits > -np.inf)               # [K]
    order = np.argsort(-logits[ids], kind="stable")      # [K]
    return ids[order]                                    # [K]


def keep_only(logits, ids):
    """The logits of these ids, and -inf for all others: [V]."""
    kept = np.full_like(logits, -np.inf)                 # [V]
    kept[ids] = logits[ids]
    return kept                                          # [V]


def keep_top_k(logits, k):
    """Top-k: the logits, with all but the k largest set to -inf, [V]. k = 0 keeps all."""
    if k == 0 or k >= len(logits):
        return logits
    # For speed only: not all 50,257 tokens are ranked, but only those whose logit is at least the
    # k-th largest. np.partition puts this logit at place -k, without sorting the rest.
    kth_largest = np.partition(logits, -k)[-k]
    candidates = np.where(logits >= kth_largest, logits, -np.inf)  # [V]
    return keep_only(logits, ranked(candidates)[:k])               # [V]


def keep_top_p(logits, p):
    """Top-p (nucleus sampling): the logits of the likeliest tokens, the others set to -inf, [V].

    Tokens are kept, from the likeliest on, until their probabilities add up to p or more. Of the
    probabilities 0.5, 0.3 and 0.2, p = 0.7 keeps the first two: 0.5 alone does not reach 0.7, but
    0.5 + 0.3 does. p = 1 keeps all. From Holtzman et al. 2019, arXiv 1904.09751. (OpenAI's own
    script stops before the sum goes beyond p: in this example, it would keep only the first token.)
    """
    if p == 1:  # must keep all; in the code that follows, rounding could bring the sum to 1 early
        return logits
    ids = ranked(logits)                       # [K]
    probs = softmax(logits[ids])               # [K]
    # A token is kept if all likelier tokens together do not reach p yet.
    before = probs.cumsum() - probs            # [K]
    return keep_only(logits, ids[before < p])  # [V]


def sample(logits, rng, temperature, top_k, top_p):
    """Picks the next id of one text, from its logits [V].

    rng: a numpy.random.Generator. temperature 0 means greedy: the likeliest token, no draw.

    Temperature, top-k, top-p is OpenAI's order. Top-p comes last because it adds up probabilities,
    which the other two change. If it came first, its probabilities would no longer hold when we
    draw. (The other two could be swapped: the k likeliest are the same at any temperature.)
    """
    if temperature == 0:
        return logits.argmax()
    tempered = scale_by_temperature(logits, temperature)  # [V]
    within_k = keep_top_k(tempered, top_k)                # [V]
    within_p = keep_top_p(within_k, top_p)                # [V]

    # The draw: add to each logit a random number of its own, -log(-log(u)) with u uniform between 0
    # and 1, and take the token with the largest sum. It can be proved (not here) that each token
    # wins with its softmax probability. This is called the Gumbel-max trick. rng.choice would do as
    # well, but here a debugger shows whether a token won by a high logit or by luck.
    ids = np.flatnonzero(within_p > -np.inf)              # [K]
    noise = -np.log(-np.log(rng.random(len(ids))))        # [K]
    noisy = within_p[ids] + noise                         # [K]
    return ids[noisy.argmax()]


# ---- Generating ----------------------------------------------------------------------------

# For speed only: a long prompt is given to `gpt2` in pieces of this many tokens. A piece is not
# compared with keys that come after it, and its arrays fit in the processor's own fast memory.
CHUNK = 256


def generate(
    inputs, params, n_head, n_tokens_to_generate,
    rngs=None, temperature=0.0, top_k=0, top_p=1.0, stop_id=None,
):
    """Continues a prompt token by token. Yields int [B], the next id of each sample.

    inputs: the prompt, a list of 1 to n_ctx ids. params: a dict with wte, wpe, blocks and ln_f.
    rngs: a list of B random generators (numpy.random.Generator), one for each sample. None: B is 1.
    temperature, top_k, top_p: see `sample`. By default, the likeliest token is always taken.
    stop_id: the id of the token that marks the end of a text. Once a sample has drawn it, only
    stop_id is yielded for it. When all have drawn it, generating ends. None: nothing ends early.
    Raises ValueError if an argument is out of range, or if the logits are not finite.

    All samples continue the same prompt. So the prompt goes through the model once, as one sample,
    and only then does each sample get its own copy of the cache.

    The model cannot look at more than n_ctx tokens: wpe has no vectors for more positions. So when
    a text outgrows n_ctx, its last n_ctx // 2 tokens become a new prompt, with no cache. It would
    not be enough to drop the oldest token: all others would stand one position earlier, but their
    keys and values in the cache were computed for the old positions. Half is a compromise: to keep
    more means a new prompt more often, to keep fewer means that the model knows less of its text.
    """
    rngs = [np.random.default_rng()] if rngs is None else rngs
    B = len(rngs)
    n_vocab, n_ctx = len(params["wte"]), len(params["wpe"])
    checks.check_generate(inputs, n_vocab, n_ctx, n_tokens_to_generate, temperature, top_k, top_p)
    stop_id = -1 if stop_id is None else stop_id  # no token has the id -1
    ended = np.zeros(B, dtype=bool)                                   # [B]
    window = np.tile(inputs, (B, 1))   # a row of ids for each sample: its text, or the end of it
    new_ids, cache = window[:1], None  # the prompt is the same for all, so one row is enough

    for _ in range(n_tokens_to_generate):
        for start in range(0, new_ids.shape[1], CHUNK):
            chunk = new_ids[:, start : start + CHUNK]                 # [1, T], later [B, T]
            with np.errstate(all="ignore"):  # some Macs warn for no reason, NumPy issue 28687
                logits, cache = gpt2(chunk, **params, n_head=n_head, cache=cache)
        if not np.isfinite(logits).all():
            raise ValueError("the logits are not finite: check the model with utils.py verify")

        # After the prompt, there is a single row of logits, from which all samples draw.
        by_sample = np.broadcast_to(logits, (B, n_vocab))             # [B, V]
        drawn = [sample(one, rng, temperature, top_k, top_p) for one, rng in zip(by_sample, rngs)]
        next_ids = np.where(ended, stop_id, drawn)                    # [B]
        yield next_ids

        ended = next_ids == stop_id                                   # [B]
        if ended.all():
            return
        new_ids = next_ids[:, None]                                   # [B, 1]
        window = np.append(window, new_ids, axis=1)
        if window.shape[1] > n_ctx:
            window = window[:, -(n_ctx // 2) :]
            new_ids, cache = window, None


# ---- The command line ----------------------------------------------------------------------


def main(
    prompt=None, n_tokens_to_generate=40, model_size="124M", models_dir=None,
    temperature=0.0, top_k=0, top_p=1.0, nsamples=1, batch_size=None, seed=None,
):
    """Prints continuations of a prompt. `python gpt2.py --help` explains the options.

    Options may be text, as on the command line, or numbers. Raises ValueError if one is wrong or a
    file of the model is damaged, and OSError if a file cannot be read or downloaded.
    """
    # Not about GPT-2 itself. Imported here, so that `import gpt2` needs no package but NumPy.
    import cli
    import model_names
    import printing
    import prompts
    import utils

    n_tokens_to_generate = checks.integer("n_tokens_to_generate", n_tokens_to_generate, lowest=0)
    temperature, top_k, top_p = checks.sampling_options(temperature, top_k, top_p)
    nsamples = checks.integer("nsamples", nsamples, lowest=1)
    batch_size = min(nsamples, 8) if batch_size is None else batch_size
    batch_size = checks.integer("batch_size", batch_size, lowest=1)
    seed = None if seed is None else checks.integer("seed", seed, lowest=0)
    models_dir = model_names.MODELS_DIR if models_dir is None else models_dir
    model_names.check_model_size(model_size, models_dir)
    prompt = prompts.read_prompt(prompt)  # returns None if the user should be asked, see below

    # encoder: the tokenizer. hparams: the sizes of the model, such as n_ctx and n_head.
    encoder, hparams = utils.load_encoder_and_hparams(model_size, models_dir)
    n_ctx, n_head = hparams["n_ctx"], hparams["n_head"]
    ids = None if prompt is None else prompts.encode_prompt(prompt, encoder, n_ctx)
    cli.note_no_effect(temperature, top_k, top_p, nsamples, seed)
    params = utils.load_params(model_size, models_dir, hparams)
    sampling = dict(temperature=temperature, top_k=top_k, top_p=top_p, stop_id=encoder.end_of_text)

    def answer(ids):
        """Prints the samples that continue one prompt."""
        # From one seed, SeedSequence makes a fixed series of seeds. Each call of spawn takes the
        # next B of them, so sample 5 always gets the fifth seed, whatever the batch size is.
        seeds = np.random.SeedSequence(cli.choose_seed(seed, temperature))
        for first in range(0, nsamples, batch_size):
            B = min(batch_size, nsamples - first)
            rngs = [np.random.default_rng(child) for child in seeds.spawn(B)]
            steps = generate(ids, params, n_head, n_tokens_to_generate, rngs, **sampling)
            printing.print_samples(
                steps, n_tokens_to_generate, B, first, nsamples, encoder, len(ids), n_ctx
            )

    if prompt is None:
        prompts.session(answer, encoder, n_ctx, n_tokens_to_generate)
    else:
        answer(ids)


if __name__ == "__main__":
    import cli

    cli.run(main)

# The tool uv reads what follows: the packages that `uv run gpt2.py "..."` needs.
# /// script
# requires-python = ">=3.10"
# dependencies = ["numpy>=1.26", "regex>=2023.12.25", "requests>=2.31", "tqdm>=4.66", "fire>=0.7"]
# ///
