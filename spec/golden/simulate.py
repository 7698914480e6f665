"""Simulates INT8 linears in transformers from the formulas, as an independent check of what quantization computes.

Weights: symmetric, one scale a row, absmax / 127. Activations: static asymmetric u8 with scale and zero point from the range of the
smoothed input over all sequences, or symmetric per token. SmoothQuant's factors from the largest magnitudes of input and weights,
over the linears that share the input. Everything else stays float32.
"""
import torch

SHARED = ("query", "key", "value", "q_lin", "k_lin", "v_lin", "q", "k", "v")


def f32(x):
    return x.to(torch.float32)


class Site:
    """The input that one or more linears share."""

    def __init__(self):
        self.linears, self.low, self.high = [], None, None

    def observe(self, x):
        x = x.reshape(-1, x.shape[-1])
        low, high = x.min(0).values.clamp(max=0), x.max(0).values.clamp(min=0)
        self.low = low if self.low is None else torch.minimum(self.low, low)
        self.high = high if self.high is None else torch.maximum(self.high, high)

    def prepare(self, alpha):
        xmax = torch.maximum(-self.low, self.high).double()
        wmax = torch.stack([l.weight.abs().max(0).values for l in self.linears]).max(0).values.double()
        s = (xmax ** alpha / wmax ** (1 - alpha)).clamp(1e-5, 1e5)
        self.s = f32(torch.where((xmax == 0) | (wmax == 0), torch.ones_like(s), s))
        low, high = (self.low / self.s).min().double().clamp(max=0), (self.high / self.s).max().double().clamp(min=0)
        self.scale = f32((high - low) / 255)
        self.zero = torch.round(-low / self.scale.double()).clamp(0, 255)


def linear(l, site, mode):
    w = l.weight * site.s
    w_scale = w.abs().max(1).values / 127
    w_scale = torch.where(w_scale == 0, torch.ones_like(w_scale), w_scale)
    q_w = torch.round(w / w_scale[:, None]).clamp(-127, 127).double()

    def forward(x):
        if mode == "static":
            q = torch.round(x * ((1 / site.scale) * (1 / site.s))).clamp(-site.zero, 255 - site.zero)
            scale = site.scale
        else:
            x = x * (1 / site.s)
            scale = x.abs().max(-1, keepdim=True).values / 127
            scale = torch.where(scale == 0, torch.ones_like(scale), scale)
            q = torch.round(x * (1 / scale)).clamp(-127, 127)
        return f32((q.double() @ q_w.T) * (scale * w_scale).double() + l.bias.double())
    return forward


def int8(model, run, sequences, mode, alpha):
    """Last hidden states of each sequence. run(i): a forward of sequence i. The model is left as it was."""
    sites, of = {}, {}
    for name, m in model.named_modules():
        if isinstance(m, torch.nn.Linear) and any(part in ("encoder", "transformer", "embeddings_project") for part in name.split(".")):
            parent, last = name.rsplit(".", 1)
            of[m] = sites.setdefault(parent if last in SHARED else name, Site())
            of[m].linears.append(m)
    with torch.no_grad():
        hooks = [m.register_forward_pre_hook(lambda m, args: of[m].observe(args[0])) for m in of]
        for i in range(len(sequences)):
            run(i)
        for h in hooks:
            h.remove()
        for site in sites.values():
            site.prepare(alpha)
        for m, site in of.items():
            m.forward = linear(m, site, mode)
        states = [run(i).hidden_states[-1][0].clone() for i in range(len(sequences))]
        for m in of:
            del m.forward
    return states
