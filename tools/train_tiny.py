"""Makes models/tiny: a small GPT-2, trained from scratch on one text file, in OpenAI's format.

    pip install -r tools/requirements.txt
    python tools/train_tiny.py input.txt            # about half an hour on 2 idle cores
    python tools/score_tiny.py input.txt            # the score of what it wrote, by gpt2.py

    input.txt
       |  keep the last tenth apart: nothing here sees it before the final score
    first nine tenths
       |  learn a byte-level BPE          (tokenizers)  ->  encoder.json, vocab.bpe
    ids
       |  train a GPT-2 from random weights  (PyTorch)
    weights
       |  save under OpenAI's names       (TensorFlow)  ->  hparams.json, checkpoint, model.ckpt.*

With --trial, it trains on the first eight tenths, scores the ninth and writes nothing. This is for
choosing the settings, so that the last tenth has no part in the choice either.
"""

import argparse
import json
import math
import os

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import nn
from tqdm import tqdm

# ---- Settings ------------------------------------------------------------------------------

HPARAMS = {"n_vocab": 1024, "n_ctx": 256, "n_embd": 128, "n_head": 4, "n_layer": 5}

STEPS = 4400
BATCH = 16  # blocks of n_ctx tokens in one step
LEARNING_RATE = 8e-3
WARMUP = 100  # steps in which the learning rate climbs from 0
FADING = 0.4  # the share of the steps, at the end, in which the learning rate falls to 0
WEIGHT_DECAY = 0.1  # on the matrices of the blocks only
DROPOUT = 0.1  # of the embeddings, and of what attention and the mlp add
UNMERGE = 0.1  # the chance that a merge is undone: see `unmerge`
SEED = 1

# ---- Vocabulary ----------------------------------------------------------------------------


def learn_bpe(text):
    """A tokenizer with the 256 bytes, the merges learned from the text, and <|endoftext|>.

    The bytes come in GPT-2's order, which is the order of the characters that stand for them.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # GPT-2's regex
    trainer = trainers.BpeTrainer(
        vocab_size=HPARAMS["n_vocab"] - 1,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator([text], trainer)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


def vocabulary(tokenizer):
    """What the tokenizer learned: a dict token -> id in the order of the ids, and the merges."""
    ids = dict(sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]))
    merges = [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]
    if [a + b for a, b in merges] != list(ids)[256:-1]:
        raise ValueError("in GPT-2's vocabulary merge number i makes the token with id 256 + i")
    return ids, merges


def unmerge(ids, parts, chance):
    """The same text in other tokens: twice, each merged token is split in two with this chance.

    ids: [tokens]. parts: [V, 2], the two ids that each token was merged from.
    A model of a million parameters soon knows 400,000 tokens by heart. If the text is cut
    differently, the tokens are new each time, and the model learns how they are spelled. This is
    a simple form of BPE-dropout (arXiv 1910.13267).
    """
    for _ in range(2):
        undo = (ids >= 256) & (torch.rand(len(ids)) < chance)
        pairs = torch.where(undo[:, None], parts[ids], ids[:, None])  # [tokens, 2]
        ids = pairs[torch.stack([torch.ones_like(undo), undo], dim=1)]
    return ids


# ---- Model ---------------------------------------------------------------------------------
# GPT-2 in PyTorch. The attributes have the names that the checkpoint gives the parameters.


class Linear(nn.Module):
    def __init__(self, n_in, n_out, std=0.02):
        super().__init__()
        self.w = nn.Parameter(torch.randn(n_in, n_out) * std)
        self.b = nn.Parameter(torch.zeros(n_out))

    def forward(self, x):
        return F.linear(x, self.w.T, self.b)


class LayerNorm(nn.Module):
    def __init__(self, n_embd):
        super().__init__()
        self.g = nn.Parameter(torch.ones(n_embd))
        self.b = nn.Parameter(torch.zeros(n_embd))

    def forward(self, x):
        return F.layer_norm(x, self.g.shape, self.g, self.b, eps=1e-5)


class Attention(nn.Module):
    def __init__(self, n_embd, n_head, out_std):
        super().__init__()
        self.n_head = n_head
        self.c_attn = Linear(n_embd, 3 * n_embd)
        self.c_proj = Linear(n_embd, n_embd, out_std)

    def forward(self, x):
        B, T, C = x.shape
        qkv = self.c_attn(x).view(B, T, 3, self.n_head, C // self.n_head)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # [B, H, T, D]
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(heads.transpose(1, 2).reshape(B, T, C))


class MLP(nn.Module):
    def __init__(self, n_embd, out_std):
        super().__init__()
        self.c_fc = Linear(n_embd, 4 * n_embd)
        self.c_proj = Linear(4 * n_embd, n_embd, out_std)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, n_embd, n_head, out_std):
        super().__init__()
        self.ln_1 = LayerNorm(n_embd)
        self.attn = Attention(n_embd, n_head, out_std)
        self.ln_2 = LayerNorm(n_embd)
        self.mlp = MLP(n_embd, out_std)

    def forward(self, x):
        x = x + F.dropout(self.attn(self.ln_1(x)), DROPOUT, self.training)
        return x + F.dropout(self.mlp(self.ln_2(x)), DROPOUT, self.training)


class GPT2(nn.Module):
    def __init__(self, n_vocab, n_ctx, n_embd, n_head, n_layer):
        super().__init__()
        self.wte = nn.Parameter(torch.randn(n_vocab, n_embd) * 0.02)
        self.wpe = nn.Parameter(torch.randn(n_ctx, n_embd) * 0.02)
        out_std = 0.02 / math.sqrt(2 * n_layer)  # 2 * n_layer outputs add up in one vector
        self.h = nn.ModuleList(Block(n_embd, n_head, out_std) for _ in range(n_layer))
        self.ln_f = LayerNorm(n_embd)

    def forward(self, inputs):
        """inputs: ids [B, T]. Returns the logits [B, T, V]."""
        x = self.wte[inputs] + self.wpe[: inputs.shape[1]]  # [B, T, C]
        x = F.dropout(x, DROPOUT, self.training)
        for block in self.h:
            x = block(x)
        return self.ln_f(x) @ self.wte.T  # [B, T, V]


# ---- Training ------------------------------------------------------------------------------


def fade(step):
    """1 for most of the training, then down to 0 in a straight line."""
    return min(1, (STEPS - step) / (FADING * STEPS))


def batches(ids, parts):
    """Yields a batch [BATCH, n_ctx + 1] of training text for each of the STEPS.

    Each pass over the text undoes other merges and cuts the blocks at other places. Towards the
    end no merge is undone any more, as when the model is used.
    """
    size = HPARAMS["n_ctx"] + 1
    step = 0
    while step < STEPS:
        tokens = unmerge(ids, parts, UNMERGE * fade(step))
        tokens = tokens[torch.randint(size, ()) :]
        blocks = tokens[: len(tokens) // size * size].view(-1, size)
        order = torch.randperm(len(blocks))
        for batch in order[: len(order) // BATCH * BATCH].view(-1, BATCH)[: STEPS - step]:
            yield blocks[batch]
            step += 1


def train(model, ids, parts):
    """Trains the model on the ids.

    Muon moves the matrices of the blocks, AdamW everything else.
    """
    matrices = [p for p in model.h.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if all(p is not matrix for matrix in matrices)]
    optimizers = [
        torch.optim.Muon(matrices, weight_decay=WEIGHT_DECAY, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, weight_decay=0, betas=(0.9, 0.99)),
    ]
    model.train()
    bar = tqdm(batches(ids, parts), total=STEPS, desc="training")
    for step, batch in enumerate(bar):
        rate = LEARNING_RATE * min(1, (step + 1) / WARMUP) * fade(step)
        with torch.autocast("cpu", torch.bfloat16):  # faster where the processor knows bfloat16
            logits = model(batch[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        model.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.param_groups[0]["lr"] = rate
            optimizer.step()
        bar.set_postfix(loss=f"{loss.item():.3f}")


@torch.no_grad()
def score(model, ids, n_chars):
    """Nats per character of a text with these ids. score_tiny.py says what is counted."""
    n_ctx = HPARAMS["n_ctx"]
    model.eval()
    losses = [
        F.cross_entropy(model(ids[None, i : i + n_ctx])[0], ids[i + 1 : i + n_ctx + 1])
        for i in range(0, len(ids) - n_ctx, n_ctx)
    ]
    return torch.stack(losses).mean().item() * len(ids) / n_chars


# ---- Files ---------------------------------------------------------------------------------


def write_vocabulary(ids, merges, folder):
    """Writes encoder.json and vocab.bpe."""
    with open(os.path.join(folder, "encoder.json"), "w", encoding="utf-8") as file:
        json.dump(ids, file)
    with open(os.path.join(folder, "vocab.bpe"), "w", encoding="utf-8", newline="\n") as file:
        file.write("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))


def write_checkpoint(model, folder):
    """Writes hparams.json, checkpoint, model.ckpt.index and model.ckpt.data-00000-of-00001."""
    import tensorflow.compat.v1 as tf

    with open(os.path.join(folder, "hparams.json"), "w", newline="\n") as file:
        file.write(json.dumps(HPARAMS, indent=2) + "\n")
    with tf.Graph().as_default(), tf.Session() as session:
        variables = {}
        for name, parameter in model.named_parameters():
            array = parameter.detach().numpy()
            if name.endswith(".w"):
                array = array[None]  # OpenAI's layers are convolutions of width 1: [1, in, out]
            # h.0.attn.c_attn.w becomes model/h0/attn/c_attn/w
            name = "model/" + name.replace("h.", "h", 1).replace(".", "/")
            variables[name] = tf.Variable(array, name=name)
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver(variables, save_relative_paths=True)
        saver.save(session, os.path.join(folder, "model.ckpt"), write_meta_graph=False)


# ---- All of it -----------------------------------------------------------------------------


def main():
    models_tiny = os.path.join(os.path.dirname(__file__), "..", "models", "tiny")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", help="the text file, in UTF-8")
    parser.add_argument("--folder", default=models_tiny, help="where the model goes")
    parser.add_argument("--trial", action="store_true", help="score the ninth tenth, write nothing")
    args = parser.parse_args()

    torch.manual_seed(SEED)
    with open(args.text, encoding="utf-8", newline="") as file:
        text = file.read()
    tenths = [text[len(text) * i // 10 : len(text) * (i + 1) // 10] for i in range(10)]
    if args.trial:
        tenths.pop()
    training, held_out = "".join(tenths[:-1]), tenths[-1]

    tokenizer = learn_bpe(training)
    ids, merges = vocabulary(tokenizer)
    parts = torch.zeros(len(ids), 2, dtype=torch.long)
    parts[256:-1] = torch.tensor([[ids[a], ids[b]] for a, b in merges])

    model = GPT2(**HPARAMS)
    train(model, torch.tensor(tokenizer.encode(training).ids), parts)
    if not args.trial:
        os.makedirs(args.folder, exist_ok=True)
        write_vocabulary(ids, merges, args.folder)
        write_checkpoint(model, args.folder)

    n_parameters = sum(p.numel() for p in model.parameters())
    nats = score(model, torch.tensor(tokenizer.encode(held_out).ids), len(held_out))
    print(f"{n_parameters:,} parameters, {nats:.4f} nats per character of the held-out tenth")


if __name__ == "__main__":
    main()
