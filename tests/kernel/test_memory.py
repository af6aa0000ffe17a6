"""Memory that starting needed goes back to the system."""

import subprocess
import sys

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
