"""
Second tries, for all beds that start pods: on a machine that others keep busy a scenario may be late once. With
E2E_SECOND_TRY (hack/e2e --second-try) a few that waited in vain are run again at once, and the report says so. Whatever
else is wrong, a VF in two containers above all, is wrong for good. Standard library only.
"""
import os
import subprocess

MOST = 2  # scenarios of a run: where more are late, it is not by chance
AGAIN = "again"  # the verdict of a try that has another one


class Late(AssertionError):
    """Something did not happen in time."""


class Tries:
    def __init__(self, most=MOST if os.environ.get("E2E_SECOND_TRY") else 0):
        self.most, self.second = most, set()

    def verdict(self, scenario, failure):
        """Of a scenario that ended with this exception: AGAIN, or None."""
        late = isinstance(failure, (Late, TimeoutError, subprocess.TimeoutExpired))
        if not late or scenario in self.second or len(self.second) == self.most:
            return None
        self.second.add(scenario)
        return AGAIN

    def remark(self, scenario, remark):
        """What is said of a scenario that passed; .ci/run looks for it."""
        if scenario not in self.second:
            return remark
        return "passed only when tried again" + (f": {remark}" if remark else "")
