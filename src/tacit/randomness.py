"""Random numbers: named generators from one seed, and uniform numbers from few random bits."""

import hashlib
from collections.abc import Sequence

import torch
from jaxtyping import Float, UInt8
from torch import Generator, Tensor

REPLICAS_OF_A_SEED = 1000
MOST_STEPS_AHEAD = 64
MOST_BYTES_AHEAD = 2**25  # of one replica


def generator_for(seed: int, purpose: str, device: torch.device | str = "cpu") -> Generator:
    """Return a generator for one purpose, independent of the generators of the same seed for other purposes.

    >>> a, b = generator_for(0, "batches"), generator_for(0, "graphs")
    >>> bool(torch.rand(1, generator=a) == torch.rand(1, generator=b))
    False
    """
    digest = hashlib.blake2b(f"{seed}/{purpose}".encode(), digest_size=7).digest()
    return Generator(device=device).manual_seed(int.from_bytes(digest))


def replica_seeds(seed: int, replicas: int) -> list[int]:
    """Return the seeds of the replicas of a run; up to 1,000 replicas, runs with different seeds share none.

    >>> replica_seeds(2, 3)
    [2000, 2001, 2002]
    """
    return [seed * REPLICAS_OF_A_SEED + replica for replica in range(replicas)]


def draw_uniforms(*shape: int, generator: Generator, dtype: torch.dtype = torch.float32) -> Float[Tensor, "..."]:
    r"""Draw $u = (k + r) / 2^8$: eight bits $k$ for every number, a fraction $r$ shared along the first axis.

    The fraction, $(k' + 1/2) / 2^{15}$, decides only one comparison in 256, so one set is shared by all pairs of a
    batch. Each $u$ is uniform to 23 bits and lies strictly between 0 and 1. Numbers that differ in any axis but the
    first are independent, so the graphs of one pair are independent, which exact gradients require. This takes a fifth
    of the time of floats with all their bits.

    >>> draw_uniforms(2, 3, generator=generator_for(0, "doc")).shape
    torch.Size([2, 3])
    """
    return uniforms_from(*_random_bits(torch.Size(shape), 1, generator, dtype))[0]


def uniforms_from(bytes_: UInt8[Tensor, "..."], fraction: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Combine the eight bits and the fraction of each number."""
    return (bytes_.to(fraction.dtype) + fraction) * (1 / 2**8)


class UniformStream:
    """A stream of the bits of :func:`draw_uniforms` for successive steps.

    On a GPU, a launch takes longer than a draw, so the bits of many steps are drawn at once. The number of steps
    depends only on the shape, so a stream does not depend on other streams.
    """

    def __init__(self, shape: tuple[int, ...], generator: Generator, dtype: torch.dtype = torch.float32) -> None:
        self.shape, self.generator, self.dtype = torch.Size(shape), generator, dtype
        on_gpu = generator.device.type == "cuda"
        self._ahead = min(MOST_STEPS_AHEAD, max(1, MOST_BYTES_AHEAD // self.shape.numel())) if on_gpu else 1
        self.drawn: tuple[Tensor, Tensor] | None = None  # bits of several steps, (step, ...)
        self.handed_out = 0  # steps of ``drawn`` that were used
        self._before = generator.get_state()  # before ``drawn`` was drawn

    def bits(self) -> tuple[UInt8[Tensor, "..."], Float[Tensor, "..."]]:
        """Return the bits of the next step, for :func:`uniforms_from`."""
        (bytes_, fraction), step = self.next_place()
        return bytes_[step], fraction[step]

    def next_place(self) -> tuple[tuple[Tensor, Tensor], int]:
        """Return the bits of several steps, and the index of the next step among them."""
        if self.drawn is None or self.handed_out == self._ahead:
            self._before = self.generator.get_state()
            self.drawn, self.handed_out = _random_bits(self.shape, self._ahead, self.generator, self.dtype), 0
        self.handed_out += 1
        return self.drawn, self.handed_out - 1

    def draw(self) -> Float[Tensor, "..."]:
        """Return the uniforms of the next step."""
        return uniforms_from(*self.bits())

    def place(self) -> tuple[UInt8[Tensor, " byte"], int]:
        """Return the position of the stream: the state of the generator, and the number of steps used since."""
        if self.drawn is None or self.handed_out == self._ahead:
            return self.generator.get_state(), 0
        return self._before, self.handed_out

    def go_to(self, state: UInt8[Tensor, " byte"], steps: int) -> None:
        """Go to a position that :meth:`place` returned.

        >>> stream = UniformStream((2, 3), generator_for(0, "doc"))
        >>> place, first = stream.place(), stream.draw()
        >>> stream.go_to(*place)
        >>> bool((stream.draw() == first).all())
        True
        """
        self.generator.set_state(state)
        self.drawn = None
        for _ in range(steps):
            self.next_place()


class JoinedStreams:
    """The bits of several streams, stacked as (stream, ...); the bits of many steps are stacked at once.

    >>> streams = [UniformStream((2, 3), generator_for(seed, "doc")) for seed in range(4)]
    >>> [part.shape for part in JoinedStreams(streams).bits()]
    [torch.Size([4, 2, 3]), torch.Size([4, 1, 3])]
    """

    def __init__(self, streams: Sequence[UniformStream]) -> None:
        self.streams = streams
        self._joined: tuple[Tensor, Tensor] | None = None
        self._of: tuple[Tensor, Tensor] | None = None

    def bits(self) -> tuple[UInt8[Tensor, "stream ..."], Float[Tensor, "stream ..."]]:
        """Return the bits of the next step of every stream."""
        (bytes_, fraction), step = self.next_place()
        return bytes_[step], fraction[step]

    def next_place(self) -> tuple[tuple[Tensor, Tensor], int]:
        """Return the bits of several steps, (step, stream, ...), and the index of the next step."""
        places = [stream.next_place() for stream in self.streams]
        first, step = places[0]
        if self._joined is None or self._of is not first:
            bytes_, fractions = (torch.stack(parts, 1) for parts in zip(*(drawn for drawn, _ in places), strict=True))
            self._joined, self._of = (bytes_, fractions), first
        return self._joined, step


def _random_bits(shape: torch.Size, steps: int, generator: Generator, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return bytes (step, *shape) and fractions (step, 1, *shape[1:])."""
    bytes_ = _random_words(steps * shape.numel(), torch.uint8, generator).view(steps, *shape)
    words = _random_words(steps * shape[1:].numel(), torch.int16, generator).view(steps, 1, *shape[1:])
    return bytes_, ((words >> 1).to(dtype) + (2**14 + 0.5)) / 2**15


def _random_words(count: int, dtype: torch.dtype, generator: Generator) -> Tensor:
    """Return ``count`` random integers over the full range of their type, taken from 64-bit words."""
    per_word = 8 // dtype.itemsize
    words = torch.empty(-(-count // per_word), dtype=torch.int64, device=generator.device)
    return words.random_(-(2**63), None, generator=generator).view(dtype)[:count]
