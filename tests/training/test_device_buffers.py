import torch

from tacit.randomness import JoinedStreams, UniformStream, generator_for
from tacit.training.gradient import DeviceBuffers, read_buffers


def streams(ahead):
    found = [UniformStream((2, 3), generator_for(seed, "buffers")) for seed in range(3)]
    for stream in found:
        stream._ahead = ahead
    return found


def test_every_step_finds_its_own(rng):
    """Over two epochs of five steps, with bits for three steps at a time, and an epoch that begins in the middle."""
    plan = torch.rand(10, 6, generator=rng)
    joined, alone = JoinedStreams(streams(3)), streams(3)
    buffers, step, places = DeviceBuffers(plan, joined), 0, set()
    for done in (0, 2, 3):
        order = torch.randint(100, (5, 3, 7), generator=rng)
        buffers.begin_epoch(step, order, done)
        for within in range(done, 5):
            inputs = buffers.prepare()
            places.add(tuple(part.data_ptr() for part in inputs))
            numbers, rows, (bytes_, fraction) = read_buffers(*inputs)
            wanted = [stream.bits() for stream in alone]
            assert torch.equal(torch.stack(numbers), plan[step])
            assert torch.equal(rows, order[within])
            assert torch.equal(bytes_, torch.stack([part for part, _ in wanted]))
            assert torch.equal(fraction, torch.stack([part for _, part in wanted]))
            step += 1
    assert len(places) == 1  # nothing moves in memory: a recorded step reads where it was recorded
