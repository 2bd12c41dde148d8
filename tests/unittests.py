# SPDX-License-Identifier: BSD-2-Clause
"""Tests of Python's unittest, run a file after the other by another Python, and counted."""
import glob
import os
import re
import subprocess
import time


def run(folder, python, env, names):
    """Run the files test_*.py of @folder whose tests have one of @names, all without.  Outcomes."""
    outcomes = {'ok': 0, 'FAILED': 0, 'skipped': 0}
    chosen = [word for name in names for word in ('-k', name)]
    for path in sorted(glob.glob(os.path.join(folder, 'test_*.py'))):
        begun = time.monotonic()
        ran = subprocess.run([python, path, '-v', *chosen], env=env, check=False, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
        found = re.findall(r'^(test_\w+) \(__main__\.(\w+).*?\.\.\. (.*)$', ran.stdout,
                           re.MULTILINE)
        failed = 0
        for test, group, outcome in found:
            word = 'ok' if outcome == 'ok' else \
                'skipped' if outcome.startswith('skipped') else 'FAILED'
            reason = outcome[len('skipped'):] if word == 'skipped' else ''
            outcomes[word] += 1
            failed += word == 'FAILED'
            print('%-7s %s (%s)%s' % (word, test[5:], group, reason), flush=True)
        # Python 3.12 and later end with 5 when no test has that name.
        if ran.returncode not in (0, 5) and not failed:
            outcomes['FAILED'] += 1
        if ran.returncode not in (0, 5):
            print(ran.stdout)
        if found:
            print('        %s: %.0f s' % (os.path.basename(path), time.monotonic() - begun))
    return outcomes


def finish(outcomes):
    """Print the counts, the last line.  The exit status."""
    if not sum(outcomes.values()):
        print('FAILED  no test is called that')
        outcomes['FAILED'] = 1
    print('%(ok)d passed, %(FAILED)d failed, %(skipped)d skipped' % outcomes)
    return 1 if outcomes['FAILED'] else 0
