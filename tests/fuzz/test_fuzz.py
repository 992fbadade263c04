import fuzz_configs
import pytest
from fuzz_hunt import hunt

SURFACES = {"configs": (fuzz_configs.cases, 300)}


@pytest.mark.parametrize("surface", SURFACES)
def test_result_or_one_clear_line(surface):
    cases, count = SURFACES[surface]
    tally = hunt(cases(), count)
    print(tally)
    assert tally.cases >= count * 0.9
