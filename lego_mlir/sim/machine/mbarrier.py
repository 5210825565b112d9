"""The mbarrier objects in the shared memory of a wave.

An mbarrier counts the pending arrivals of its current phase (the pending count) and the pending
bytes of asynchronous copies (the tx-count, which is negative if bytes arrive before they are
expected). When both are zero, the phase is complete and the next one starts with the expected count
of arrivals.

An mbarrier is identified by its *word*: word `n` is the n-th eight bytes of shared memory of all
CTAs of the wave. The word contains the mbarrier's state in a private encoding, so that a program
that overwrites an mbarrier is detected.

Source: PTX ISA 9.7.13.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.machine.memory import SHARED, Fault, MemoryAccess
from lego_mlir.sim.ptx.types import Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

MOST = (1 << 20) - 1
"""The largest count of arrivals, and the largest tx-count in both directions."""

_PHASE = np.uint64(32)


class Mbarriers:
    """All mbarriers of a wave: each has a row in the tables below.

    Attributes:
        row_of_word: for each word of shared memory, the row of its mbarrier; -1: none.
        word: for each row its word; further tables hold the counts, the number of the current
            phase, and the state in memory.
    """

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.row_of_word: Array | None = None
        self.word = np.zeros(0, np.int64)
        self.expected = np.zeros(0, np.int64)
        self.pending = np.zeros(0, np.int64)
        self.tx = np.zeros(0, np.int64)
        self.phase = np.zeros(0, np.int64)
        self.state = np.zeros(0, np.uint64)

    # --- finding them ---

    def locate(self, access: MemoryAccess, address: Array, lanes: Array) -> Array:
        """Return the words at addresses, the k-th on behalf of the lane `lanes[k]`.

        Raises:
            Fault: an address out of bounds, misaligned, or not in shared memory.
        """
        memory = self.wave.memory
        words = np.zeros(len(lanes), np.int64)
        for buffer, index, chosen in memory.located(access, address, lanes):
            if buffer is not memory.buffers[SHARED]:
                lane = int(lanes[chosen][0])
                raise Fault(f"{access.opcode} on {buffer.name}: an mbarrier lies in shared", lane)
            words[chosen] = index
        return words

    def rows(self, words: Array, lanes: Array) -> Array:
        """Return the rows of the mbarriers at words.

        Raises:
            Fault: there is none, or something has been written over it.
        """
        if self.row_of_word is None:
            raise self._fault(np.ones(len(lanes), np.bool_), words, lanes, _UNMADE)
        rows: Array = self.row_of_word[words]
        if (missing := rows < 0).any():
            raise self._fault(missing, words, lanes, _UNMADE)
        spoilt = self._memory()[words] != self.state[rows]
        if spoilt.any():
            raise self._fault(spoilt, words, lanes, "has been overwritten by a store or a copy")
        return rows

    def cta_indices(self, words: Array) -> Array:
        """Return the indices in the wave of the CTAs that words belong to; -1 for the word -1."""
        stride = self.wave.memory.buffers[SHARED].stride // 8
        return np.where(words < 0, -1, words // stride)

    # --- life and death ---

    def init(self, words: Array, lanes: Array, counts: Array) -> None:
        """Initialize mbarriers, each with its count of arrivals (`mbarrier.init`).

        Raises:
            Fault: a count out of range, or a barrier where one is.
        """
        bad = (counts < 1) | (counts > MOST)
        if bad.any():
            count = int(counts[np.argmax(bad)])
            raise self._fault(bad, words, lanes, f"with a count of {count}: it is 1 to {MOST}")
        if self.row_of_word is None:
            self.row_of_word = np.full(len(self._memory()), -1, np.int32)
        fresh = np.zeros(len(words), np.bool_)
        fresh[np.unique(words, return_index=True)[1]] = True
        again = ~fresh | (self.row_of_word[words] >= 0)
        if again.any():
            raise self._fault(
                again, words, lanes, "is initialised twice, without mbarrier.inval between"
            )
        first, zeros = len(self.word), np.zeros(len(words), np.int64)
        self.row_of_word[words] = rows = np.arange(first, first + len(words))
        self.word = np.append(self.word, words)
        self.expected = np.append(self.expected, counts)
        self.pending = np.append(self.pending, counts)
        self.tx = np.append(self.tx, zeros)
        self.phase = np.append(self.phase, zeros)
        self.state = np.append(self.state, zeros.astype(np.uint64))
        self._changed(rows)
        self.wave.observer.mbarrier_made(words, lanes)

    def inval(self, words: Array, lanes: Array) -> None:
        """Turn words back into plain memory (`mbarrier.inval`)."""
        self.rows(words, lanes)
        assert self.row_of_word is not None
        self.row_of_word[words] = -1

    # --- counting ---

    def arrive(self, words: Array, lanes: Array, counts: Array, *, drop: bool = False) -> Array:
        """Arrive, and return the states before.

        Lanes that arrive together all get the state before any of them, as a warp does on a GPU.

        Args:
            words: the barriers.
            lanes: the arriving lanes.
            counts: the number of arrivals of each.
            drop: whether to decrease the expected counts of later phases too.

        Raises:
            Fault: more arrivals than are pending.
        """
        rows = self.rows(words, lanes)
        barriers = _distinct(rows)
        totals = np.bincount(rows, counts)[barriers].astype(np.int64)
        if (totals > self.pending[barriers]).any():
            if len(lanes) > 1:
                # A phase may complete between two of these arrivals: one after the other.
                one = [
                    self.arrive(words[k : k + 1], lanes[k : k + 1], counts[k : k + 1], drop=drop)
                    for k in range(len(lanes))
                ]
                return np.concatenate(one)
            left = int(self.pending[rows[0]])
            raise self._fault(
                np.ones(1, np.bool_),
                words,
                lanes,
                f"has {left} arrivals pending in phase {self.phase[rows[0]]}, and "
                f"{int(counts[0])} come" + (self._owed(int(rows[0])) if left == 0 else ""),
            )
        state = self.phase[rows].astype(np.uint64) << _PHASE | self.pending[rows].astype(np.uint64)
        self.pending[barriers] -= totals
        if drop:
            self.expected[barriers] -= totals
        self.wave.observer.mbarrier_arrived(words, lanes)
        self._changed(barriers)
        return state

    def add_pending(self, words: Array, lanes: Array) -> None:
        """Add one pending arrival to the current phase for each lane."""
        rows = self.rows(words, lanes)
        np.add.at(self.pending, rows, 1)
        over = self.pending[rows] > MOST
        if over.any():
            raise self._fault(over, words, lanes, f"has more than {MOST} arrivals pending")
        self._changed(_distinct(rows))

    def expect(self, words: Array, lanes: Array, amounts: Array) -> None:
        """Increase the tx-counts.

        Raises:
            Fault: a tx-count out of range.
        """
        self._transact(words, lanes, amounts)

    def complete(self, words: Array, lanes: Array, amounts: Array) -> None:
        """Decrease the tx-counts by the bytes that arrived.

        Raises:
            Fault: a tx-count out of range.
        """
        self._transact(words, lanes, -amounts)

    def _transact(self, words: Array, lanes: Array, amounts: Array) -> None:
        rows = self.rows(words, lanes)
        np.add.at(self.tx, rows, amounts)
        over = np.abs(self.tx[rows]) > MOST
        if over.any():
            count = int(self.tx[rows[np.argmax(over)]])
            raise self._fault(
                over, words, lanes, f"gets a tx-count of {count}: it is {-MOST} to {MOST}"
            )
        self._changed(_distinct(rows))

    def _changed(self, rows: Array) -> None:
        """Start the next phase where the current one is complete; write the state to memory."""
        done = rows[(self.pending[rows] == 0) & (self.tx[rows] == 0)]
        self.wave.progress += 1
        if len(done):
            self.phase[done] += 1
            self.pending[done] = self.expected[done]
            self.wave.stalls.must_recheck = True
            self.wave.observer.phase_completed(self.word[done])
        self.state[rows] = self._encoded(rows)
        self._memory()[self.word[rows]] = self.state[rows]

    # --- testing ---

    def passed(self, words: Array, lanes: Array, state: Array) -> Array:
        """Return whether the phase of a state that `arrive` returned is complete.

        Raises:
            Fault: the state is neither of the current phase nor of the one before.
        """
        now = self.phase[self.rows(words, lanes)]
        age = now - (state >> _PHASE).astype(np.int64)
        wrong = (age != 0) & (age != 1)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise self._fault(
                wrong,
                words,
                lanes,
                f"is in phase {now[at]}: the state is one of phase {now[at] - age[at]}, neither "
                f"the current nor the one before",
            )
        passed: Array = age == 1
        return passed

    def passed_parity(self, words: Array, lanes: Array, parity: Array) -> Array:
        """Return whether the last phase with a parity is complete.

        Raises:
            Fault: a parity other than 0 and 1.
        """
        now = self.phase[self.rows(words, lanes)]
        wrong = parity > 1
        if wrong.any():
            value = int(parity[np.argmax(wrong)])
            raise self._fault(wrong, words, lanes, f"gets a wait for a phase of parity {value}")
        passed: Array = (now & 1) != parity
        return passed

    # --- reports ---

    def name(self, word: int) -> str:
        """Return the name of an mbarrier: `the mbarrier full+8`."""
        stride = self.wave.memory.buffers[SHARED].stride // 8
        cta_index, at = divmod(word, stride)
        where = self.wave.program.shared_name(8 * at)
        return f"the mbarrier {where} of {self.wave.cta_name(cta_index)}"

    def describe(self, word: int) -> str:
        """Return what the current phase of an mbarrier still waits for, as text."""
        row = -1 if self.row_of_word is None else int(self.row_of_word[word])
        if row < 0:
            return f"{self.name(word)}, which is not initialised"
        return (
            f"{self.name(word)}: its phase {self.phase[row]} (parity {self.phase[row] % 2}) has "
            f"{self.pending[row]} of {self.expected[row]} arrivals pending" + self._owed(row)
        )

    def _owed(self, row: int) -> str:
        tx = int(self.tx[row])
        if tx > 0:
            return f", and {tx} bytes that it expects have not come"
        return f", and {-tx} bytes have come that nobody expects" if tx else ""

    def _fault(self, bad: Array, words: Array, lanes: Array, what: str) -> Fault:
        at = int(np.argmax(bad))
        return Fault(f"{self.name(int(words[at]))} {what}", int(lanes[at]))

    # --- the state in memory ---

    def _memory(self) -> Array:
        return self.wave.memory.buffers[SHARED].view(8)

    def _encoded(self, rows: Array) -> Array:
        """Return the states as 64 bits: counts of 20, 20 and 21 bits, the parity, and a one."""
        word = self.pending[rows] | self.expected[rows] << 20 | (self.tx[rows] & 0x1FFFFF) << 40
        word = word | (self.phase[rows] & 1) << 61 | 1 << 62
        return word.astype(np.uint64)


_UNMADE = "is not initialised (mbarrier.init)"


def pending_count(state: Array) -> Array:
    """Return the pending count in a state that `arrive` returned."""
    return (state & np.uint64(MOST)).astype(np.uint32)


def _distinct(rows: Array) -> Array:
    """Return the distinct rows, sorted. Rows are few, so counting beats sorting."""
    return np.flatnonzero(np.bincount(rows))
