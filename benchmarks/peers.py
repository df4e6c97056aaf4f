"""The contestants of the benchmark: gpt2.py, other programs that run the same model, and a limit.

A program that is not installed is named and left out.
"""

import importlib.util
import json
import sys

import numpy as np
from made_models import SIZES_124M, renamed, vocabulary_files
from measuring import THREADS

import encoder


def installed(*packages):
    """Whether all of these packages are installed. Prints the names of those that are not."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        print(f"left out, because not installed: {', '.join(missing)}", file=sys.stderr)
    return not missing


# ---- Programs that run the model -----------------------------------------------------------


class Peer:
    """A program that runs the model.

    forward(rows, cache=None) reads rows of ids, [B, T], and returns the logits, [B, V]. It leaves
    in self.cache what it needs to read the next token.

    prefill and step return what `race` takes, a pair (prepare, run).
    """

    def prefill(self, ids):
        """Each run() reads a prompt of one row."""
        return None, lambda: self.forward([ids])

    def step(self, ids, B):
        """prepare() reads a prompt in B equal rows. Each run() adds one token to every row."""
        next_rows = [[11]] * B  # the time does not depend on which token it is
        return (lambda: self.forward([ids] * B)), (lambda: self.forward(next_rows, self.cache))


class Ours(Peer):
    """A gpt2.py: the one beside this folder, or an older one given by --before."""

    def __init__(self, module, params, n_head):
        self.gpt2 = module
        self.params = params
        self.n_head = n_head

    def forward(self, rows, cache=None):
        ids = np.array(rows)
        logits, self.cache = self.gpt2.gpt2(ids, **self.params, n_head=self.n_head, cache=cache)
        return logits

    def prefill(self, ids):  # with `generate`, because it reads a long prompt in chunks
        return None, lambda: self.generate(ids, 1)

    def generate(self, ids, n_tokens):
        steps = self.gpt2.generate(ids, self.params, self.n_head, n_tokens, [None])
        return [int(id) for [id] in steps]

    def generate_without_cache(self, ids, n_tokens):
        for _ in range(n_tokens):
            ids = [*ids, int(self.forward([ids]).argmax())]

    def step_and_choose(self, ids, **sampling):
        """Like `step` with one row, but with `generate`, which also chooses the token."""

        def prepare():
            rngs = [np.random.default_rng(0)]
            n_tokens = len(self.params["wpe"]) - len(ids)
            self.steps = self.gpt2.generate(
                ids, self.params, self.n_head, n_tokens, rngs, **sampling
            )
            next(self.steps)

        return prepare, lambda: next(self.steps)


class Transformers(Peer):
    """Hugging Face's transformers, which computes with PyTorch."""

    def __init__(self, folder):
        import torch
        import transformers

        torch.set_num_threads(THREADS)
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        self.model = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
        self.model.generation_config.eos_token_id = None  # so that no text ends early
        self.torch = torch
        self.folder = folder

    def forward(self, rows, cache=None):
        with self.torch.inference_mode():
            ids = self.torch.tensor(rows)
            out = self.model(ids, cache, use_cache=True, logits_to_keep=1)
        logits, self.cache = out[:2]
        return logits[:, -1].numpy()

    def samples(self, ids, n_samples, n_tokens):
        ids = self.torch.tensor([ids])
        sizes = dict(num_return_sequences=n_samples, max_new_tokens=n_tokens)
        out = self.model.generate(ids, do_sample=True, top_k=40, pad_token_id=0, **sizes)
        assert out.shape == (n_samples, ids.shape[1] + n_tokens)

    def command(self, prompt, n_tokens):
        """The words after `python` that continue a prompt in a process of its own."""
        code = f"""
import sys
from transformers import GPT2LMHeadModel, GPT2TokenizerFast
tokenizer = GPT2TokenizerFast.from_pretrained(sys.argv[1])
model = GPT2LMHeadModel.from_pretrained(sys.argv[1])
model.generation_config.eos_token_id = None
inputs = tokenizer(sys.argv[2], return_tensors="pt")
out = model.generate(**inputs, max_new_tokens={n_tokens}, do_sample=False, pad_token_id=0)
new_ids = out[0, inputs.input_ids.shape[1]:]
assert len(new_ids) == {n_tokens}
print(tokenizer.decode(new_ids))
"""
        return ["-c", code, str(self.folder), prompt]


class LlamaCpp(Peer):
    """llama.cpp, in C++. It reads one row only, because its Python package has no batches."""

    PARTS = {"wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm"}
    PARTS |= {"ln_1": "attn_norm", "attn/c_attn": "attn_qkv", "attn/c_proj": "attn_output"}
    PARTS |= {"ln_2": "ffn_norm", "mlp/c_fc": "ffn_up", "mlp/c_proj": "ffn_down"}

    def __init__(self, tensors, path):
        import gguf
        import llama_cpp

        names, merges = [file.read_text(encoding="utf-8") for file in vocabulary_files()]
        writer = gguf.GGUFWriter(str(path), "gpt2")
        writer.add_file_type(gguf.LlamaFileType.ALL_F32)
        writer.add_context_length(SIZES_124M["n_ctx"])
        writer.add_embedding_length(SIZES_124M["n_embd"])
        writer.add_feed_forward_length(4 * SIZES_124M["n_embd"])
        writer.add_block_count(SIZES_124M["n_layer"])
        writer.add_head_count(SIZES_124M["n_head"])
        writer.add_layer_norm_eps(1e-5)
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list(list(json.loads(names)))
        writer.add_token_types([gguf.TokenType.NORMAL] * SIZES_124M["n_vocab"])
        writer.add_token_merges(merges.splitlines()[1:])
        for name, array in renamed(tensors, "", "blk", self.PARTS).items():
            is_matrix = array.ndim == 2 and "_embd" not in name
            writer.add_tensor(name, array.T.copy() if is_matrix else array)  # [out, in]
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

        F32 = int(gguf.GGMLQuantizationType.F32)  # without it, the cache is in half precision
        self.options = dict(n_ctx=SIZES_124M["n_ctx"], type_k=F32, type_v=F32, verbose=False)
        self.options |= dict(n_threads=THREADS, n_threads_batch=THREADS)
        self.path = path
        self.model = llama_cpp.Llama(str(path), **self.options)

    def forward(self, rows, cache=None):
        self.cache = "inside self.model"
        if cache is None:
            self.model.reset()
        self.model.eval(rows[0])
        return np.ctypeslib.as_array(self.model._ctx.get_logits(), (1, SIZES_124M["n_vocab"]))

    def command(self, prompt, n_tokens):
        """The words after `python` that continue a prompt in a process of its own."""
        code = f"""
import sys
from llama_cpp import Llama
model = Llama(sys.argv[1], **{self.options})
out = model(sys.argv[2], max_tokens={n_tokens}, temperature=0)
assert out["usage"]["completion_tokens"] == {n_tokens}
print(out["choices"][0]["text"])
"""
        return ["-c", code, str(self.path), prompt]


class Limit:
    """Only the matrix products, with all matrices of the model: NumPy could not be faster."""

    def __init__(self, params):
        parts = [part for layer in params["blocks"] for part in (layer["attn"], layer["mlp"])]
        self.matrices = [linear["w"] for part in parts for linear in part.values()]
        self.head = params["wte"].T

    def products(self, axes, head_axes):
        """A pair (prepare, run). run() multiplies an array [*axes, n_in] by every matrix.

        For the last matrix, which makes the logits, head_axes stands in the place of axes.
        """

        def work(w, axes):
            n_in, n_out = w.shape
            return np.ones((*axes, n_in), np.float32), w, np.empty((*axes, n_out), np.float32)

        all_work = [*(work(w, axes) for w in self.matrices), work(self.head, head_axes)]

        def run():
            for x, w, y in all_work:
                np.matmul(x, w, out=y)

        return None, run

    def prefill(self, n_tokens):
        return {"limit": self.products([n_tokens], [1])}

    def step(self, B):
        """NumPy can multiply B vectors one by one or all at once. The faster way is the limit."""
        return {"one by one": self.products([B, 1], [B, 1]), "at once": self.products([B], [B])}


# ---- Tokenizers ----------------------------------------------------------------------------
#
# Each function makes a new tokenizer, with empty caches, and returns the pair (encode, decode).


def new_encoder(folder):
    made = encoder.get_encoder(folder.name, str(folder.parent))
    return made.encode, made.decode


def new_tiktoken(folder):
    import tiktoken
    from tiktoken_ext.openai_public import r50k_pat_str

    *ordinary, end_of_text = encoder.get_encoder(folder.name, str(folder.parent)).tokens
    ids = {token: id for id, token in enumerate(ordinary)}
    special = {end_of_text.decode(): len(ordinary)}
    made = tiktoken.Encoding(
        "gpt2", pat_str=r50k_pat_str, mergeable_ranks=ids, special_tokens=special
    )
    return made.encode_ordinary, made.decode


def new_tokenizers(folder):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    made = Tokenizer(models.BPE.from_file(*map(str, vocabulary_files())))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return (lambda text: made.encode(text).ids), made.decode
