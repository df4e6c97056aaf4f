"""Chapter: why each new token was chosen."""

import numpy as np

import gpt2
from page.markup import (
    count,
    fold,
    joined,
    opening,
    ordinal,
    percent,
    prose,
    sentences,
    short,
    table,
    tag,
)

OPTIONS = {"scale_by_temperature": "temperature", "keep_top_k": "top_k", "keep_top_p": "top_p"}
LIKELIEST = 10  # rows of a table


def chapter(run):
    drawings = [Drawing(run, step) for step in range(len(run.new_ids))]
    V = run.hparams["n_vocab"]
    if not drawings[0].is_random:
        ideas = [prose(
            f"The model gives each of the {V:,} tokens a probability. At *temperature* 0, as "
            "here, the likeliest is always taken, which is known as greedy decoding. So the same "
            "prompt always gives the same text."
        )]
        return joined([
            opening("The model gives probabilities. Who picks the token?", ideas, []),
            *(section(run, drawing) for drawing in drawings),
        ])
    best = drawings[0].logits.max()
    T, k, p = (run.options[name] for name in ("temperature", "top_k", "top_p"))
    ideas = [
        prose(
            f"Chance. The model gives each of the {V:,} tokens a probability, and one token is "
            "drawn at random. A token with the probability 30% is drawn about 30 times in 100. "
            "Before that, three options change the probabilities, in this order."
        ),
        prose(
            f"*Temperature* (here {T}): the logits are divided by it before softmax turns them "
            "into probabilities. A temperature below 1 makes the differences between logits "
            "larger, so likely tokens get likelier. A temperature above 1 makes them smaller, and "
            "the other tokens gain. Temperature 0 means that nothing is drawn, and the likeliest "
            "token is always taken (*greedy decoding*)."
        ),
        prose(
            f"*Top-k* (here {k}) keeps the k likeliest tokens; 0 keeps all. Of these, *top-p* "
            f"(here {p}) keeps the likeliest, one after another, until together they reach the "
            "probability p. The tokens kept are called the *nucleus*. Tokens that are not kept "
            "get the probability 0 (– in the tables), and those that are kept add up to 1 again. "
            "Top-p comes last, so p is measured on the probabilities after temperature and top-k, "
            "not on those that the model gave."
        ),
        prose(
            "In the tables, the column “probability” gives what the model said. The columns after "
            "it give the probability after temperature, then also after top-k, then also after "
            "top-p. The column *tempered* is the logit after temperature. (It is not just the "
            "logit divided by the temperature. First, the largest logit of the step is subtracted "
            "from all logits. This changes no probability, and makes the largest tempered logit "
            f"0.) In the first step, tempered is (logit {'−' if best >= 0 else '+'} "
            f"{short(abs(best))}) / {T}. A table shows the ten likeliest tokens, the last one that "
            "top-p keeps, the first one that it drops, and the one that was drawn. All numbers are "
            "rounded."
        ),
        prose(
            "How does a program draw so that each token comes as often as its probability says? "
            "This program makes a random number, the *noise*, for each token that was kept, and "
            "adds it to the token’s tempered logit. The token with the largest sum is taken. So a "
            "likely token wins often, but not always. The noise is −log(−log(u)), where u is a "
            "random number between 0 and 1, and log is the natural logarithm. Why just this "
            "formula? With it, a token that has the probability 30% after top-p wins in 30 of 100 "
            "cases on average. (This can be proved, but not here. The noise is known as Gumbel "
            "noise.) So the draw needs only the logits: softmax does not have to turn them into "
            "probabilities first. The seed decides the noise: the same seed makes the same text."
        ),
    ]
    surprise = min(drawings, key=lambda drawing: drawing.shares[drawing.drawn])
    return joined([
        opening("The model gives probabilities. Who picks the token?", ideas,
                findings(run, drawings, surprise)),
        *(section(run, drawing, drawing in (drawings[0], surprise)) for drawing in drawings),
    ])


class Drawing:
    """One step's logits, what each option made of them, and which token was drawn."""

    def __init__(self, run, step):
        sample = run.find("sample", step)
        inner = {call.function: call for call in reversed(run.calls) if call.caller is sample}
        self.step, self.drawn = step, run.new_ids[step]
        self.logits = self.kept = sample.first_argument.value
        self.columns = {"probability": gpt2.softmax(self.logits)}
        self.n_kept = {}
        for function, option in OPTIONS.items():
            if function in inner:
                self.kept = inner[function].returned.value
                self.columns[f"{option} {run.options[option]}"] = gpt2.softmax(self.kept)
                self.n_kept[option] = int(np.isfinite(self.kept).sum())
        self.is_random = bool(inner)
        self.is_changed = not np.allclose(self.shares, self.columns["probability"], atol=1e-4)
        if inner:
            self.tempered = inner["scale_by_temperature"].returned.value
            self.noise = np.full_like(self.tempered, np.nan)  # what is left out gets none
            self.noise[sample.summaries("ids")[-1].value] = sample.summaries("noise")[-1].value
        self.in_order = list(gpt2.ranked(self.logits))  # as top-k and top-p rank them
        self.best = self.in_order[0]
        self.rank = 1 + self.in_order.index(self.drawn)

    @property
    def shares(self):
        """The probabilities by which the token was drawn: [V]."""
        return list(self.columns.values())[-1]


def findings(run, drawings, surprise):
    first = drawings[0]
    found = []
    before, after = first.columns["probability"][first.best], first.shares[first.best]
    if first.is_changed:
        found.append(sentences(
            "In the first step, temperature, top-k and top-p bring the likeliest token {} from "
            f"{percent(before)} to {percent(after)}. Of {first.logits.size:,} tokens, top-k keeps "
            f"{first.n_kept['top_k']:,} and top-p {first.n_kept['top_p']:,}.",
            run.token(first.best),
        ))
    elif not any(drawing.is_changed for drawing in drawings):
        found.append("In this run, the options leave all probabilities as they are.")
    n_best, n = sum(drawing.rank == 1 for drawing in drawings), len(drawings)
    found += [sentences(
        f"The likeliest token was drawn in {n_best} of {n} steps."
        + (f" The greatest surprise is {{}} in step {surprise.step + 1}: it was only the "
           f"{ordinal(surprise.rank)} likeliest, with "
           f"{percent(surprise.shares[surprise.drawn])} after top-p."
           if surprise.rank > 1 else ""),
        *[run.token(surprise.drawn)] * (surprise.rank > 1),
    )] * (n > 1)
    return found


def section(run, drawing, is_open=True):
    """One drawing: the reason in words, and the table."""
    place = "the likeliest" if drawing.rank == 1 else f"the {ordinal(drawing.rank)} likeliest"
    share = f", with a chance of {percent(drawing.shares[drawing.drawn])}" * drawing.is_random
    title = joined([f"New token {drawing.step + 1}: ", run.token(drawing.drawn),
                    tag("span", f" {place}{share}")])
    parts = [reason(run, drawing), choice_table(run, drawing)]
    return fold(title, *parts, is_open=is_open, class_="drawing")


def choice_table(run, drawing):
    """The likeliest tokens with all that led to the choice, and the one that was drawn."""
    longest = max(probs.max() for probs in drawing.columns.values())
    n_kept = drawing.n_kept.get("top_p", 0)
    ranks = {*range(1, LIKELIEST + 1), n_kept, n_kept + 1, drawing.rank}
    rows, above = [], 0
    for rank in sorted(rank for rank in ranks if 1 <= rank <= len(drawing.in_order)):
        if rank - above > 1:
            rows.append(gap(drawing, rank - above - 1))
        above, id = rank, drawing.in_order[rank - 1]
        cells = [str(id), short(drawing.logits[id])]
        cells += [bar(name, probs[id], longest) for name, probs in drawing.columns.items()]
        if drawing.is_random:
            noise = [drawing.noise[id], drawing.kept[id] + drawing.noise[id]]
            cells.append(short(drawing.tempered[id], 3))
            cells += ["–" if np.isnan(number) else short(number, 3) for number in noise]
        mark = tag("strong", f" {run.chosen}") if id == drawing.drawn else ""
        rows.append([joined([run.token(id), mark]), *cells])
    head = ["token", "id", "logit", *drawing.columns]
    head += ["tempered", "noise", "sum"] * drawing.is_random
    return table(f"New token {drawing.step + 1}", head, rows, "cards choice hidden-caption")


def gap(drawing, n):
    """The row that stands for n tokens that are not shown."""
    columns = 2 + len(drawing.columns) + 3 * drawing.is_random
    return ["⋮", tag("td", f"{count(n, 'token')} in between", colspan=columns, class_="gap")]


def reason(run, drawing):
    """Why the token was picked, in a few sentences."""
    before = run.label_all((run.ids + run.new_ids)[: len(run.ids) + drawing.step])
    before = before if len(before) <= 24 else "…" + before[-24:]
    before, best = tag("bdi", before, class_="token"), run.token(drawing.best)
    likeliest = percent(drawing.columns["probability"][drawing.best])
    start = f"After {{}} the likeliest token is {{}}, with {likeliest}"
    if not drawing.is_random:
        return prose(f"{start}. Temperature 0 takes it and leaves nothing to chance.", before, best)
    n_others = drawing.n_kept["top_p"] - 1
    if n_others == 0:
        return prose(f"{start}. No other token is left to choose from.", before, best)
    shares, noise, kept = drawing.shares, drawing.noise, drawing.kept
    if drawing.is_changed:
        start += f" ({percent(shares[drawing.best])} after temperature, top-k and top-p)"
    sum_of_best, id = short(kept[drawing.best] + noise[drawing.best], 3), drawing.drawn
    if id == drawing.best:
        return prose(
            f"{start}. {count(n_others, 'other token')} could be drawn too, but {{}} has the "
            f"largest sum, {sum_of_best}.", before, best, best,
        )
    return prose(
        f"{start}. But {{}} is drawn, the {ordinal(drawing.rank)} likeliest, with "
        f"{percent(shares[id])}: its noise "
        f"of {short(noise[id], 3)} takes it from {short(kept[id], 3)} to "
        f"{short(kept[id] + noise[id], 3)}. That is the largest sum; {{}} has {sum_of_best}.",
        before, best, run.token(id), best,
    )


def bar(name, share, longest):
    """A table cell with a probability as a number and as the length of a line under it."""
    if share == 0:
        return tag("td", "–", data_head=name)
    return tag("td", percent(share), class_="bar", style=f"--share:{share / longest:.2f}",
               data_head=name)
