"""Memory that starting needed goes back to the system."""

import subprocess
import sys

from muniment.kernel.memory import untouched

MAPPING = """{place} 00000000 08:01 {inode}    {name}
Size:                  8 kB
Rss:                   8 kB
Anonymous:             {changed} kB
Swap:                  0 kB
VmFlags: rd mr mw me
"""
PROGRAM = """
import decimal, sqlite3, ssl
from muniment.kernel.memory import let_go_of_code

def mapped_kb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssFile"))

before = mapped_kb()
let_go_of_code()
print(before, mapped_kb())
print(decimal.Decimal(2).sqrt(), sqlite3.connect(":memory:").execute("SELECT 6 * 7").fetchone(), ssl.RAND_status())
"""


def test_code_that_only_importing_needed_is_let_go_and_all_of_it_still_runs():
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    figures, answers = ran.stdout.splitlines()
    before, after = map(int, figures.split())
    assert after < before * 0.7
    assert answers == "1.414213562373095048801688724 (42,) True"


def _mapped(place, name="/usr/lib/libsea.so", changed=0, inode=7):
    return MAPPING.format(place=place, name=name, changed=changed, inode=inode)


def _maps(smaps):
    return "".join(f"{line}\n" for line in smaps.splitlines() if "08:01" in line)


def test_only_clean_code_pages_are_released():
    code = _mapped("1000-3000 r-xp")
    others = [
        _mapped("4000-5000 rw-p"),
        _mapped("5000-6000 r--p", changed=4),
        _mapped("6000-7000 r--s", "/data/published.db"),
        _mapped("7000-8000 r--p", "", inode=0),
    ]
    smaps = "".join([code, *others, _mapped("9000-a000 r--p", "/a b/libtide.so")])
    assert untouched(smaps, _maps(smaps)) == [(0x1000, 0x3000), (0x9000, 0xA000)]


def test_a_library_that_was_being_loaded_is_left_alone():
    loading, settled = _mapped("1000-9000 r--p"), _mapped("1000-3000 r--p") + _mapped("8000-9000 rw-p")
    whole = _mapped("a000-c000 r-xp")
    assert untouched(loading + whole, _maps(settled + whole)) == [(0xA000, 0xC000)]
