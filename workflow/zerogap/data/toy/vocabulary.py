"""Words that generated instructions of all kinds use."""

from zerogap.data.toy.situations import BOYS, GIRLS

NAMES = GIRLS + BOYS
PLACES = ("lake", "store", "beach", "farm", "school", "park", "library", "zoo", "museum", "market")
WEEK = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
